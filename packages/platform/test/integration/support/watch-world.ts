/**
 * A watch over one queue with real BullMQ workers.
 *
 * Their loops may stand still, so that a test takes a job in the name of a worker and hands it over when it wants to.
 */
import { QueueWatch } from '@sluice/platform/consumers/queue-watch';
import { WatchedQueue, type Trying } from '@sluice/platform/consumers/watched-queue';
import { redisPrefix } from '@sluice/platform/queue/queue';
import { redisHeads, type ReadHeads } from '@sluice/platform/queue/queue-heads';
import { Worker, type Job } from 'bullmq';
import { logger, NAME, type BrokerWorld } from './broker-world.ts';

export interface WatchWorldOptions {
  readonly nowMs: () => number;
  readonly loops: 'run' | 'first hangs' | 'hang';
  /** Of the same queue, as on several connections. 1 by default. */
  readonly takers?: number;
  readonly process?: (job: Job, trying: Trying) => Promise<void>;
  /** Heads for the watch in place of the true ones. */
  readonly readHeads?: (read: ReadHeads) => ReadHeads;
  readonly restoreLimit?: () => Promise<void>;
}

export const keyOf = (broker: BrokerWorld, part: string): string =>
  `${redisPrefix(broker.options.prefix, NAME)}:${NAME}:${part}`;

export function createWatchWorld(broker: BrokerWorld, options: WatchWorldOptions) {
  const { nowMs, loops, takers = 1, restoreLimit } = options;
  const workers: Worker[] = [];
  const processed: string[] = [];
  const events: string[] = [];
  /** Gives a job to the processor of its worker, in the order of `workers`. */
  const handOver: ((job: Job, token: string) => Promise<void>)[] = [];
  const openTaker = (): WatchedQueue =>
    new WatchedQueue({
      name: NAME,
      concurrency: 1,
      process(job, _, trying) {
        processed.push(String(job.id));
        return options.process?.(job, trying) ?? Promise.resolve();
      },
      openWorker(process) {
        const worker = new Worker(NAME, process, {
          ...broker.connection(),
          autorun: false,
          skipStalledCheck: true,
        });
        worker.on('error', () => undefined);
        if (loops === 'hang' || (loops === 'first hangs' && workers.length === 0))
          worker.run = () => new Promise(() => {});
        workers.push(worker);
        handOver.push(process);
        return worker;
      },
      endWait: () => void events.push('looks for jobs'),
      now: nowMs,
      logger,
    });
  const queues = Array.from({ length: takers }, openTaker);
  const readHeads = redisHeads(
    broker.redis,
    (name, part) => `${redisPrefix(broker.options.prefix, name)}:${name}:${part}`,
  );
  const watch = new QueueWatch({
    queues,
    readHeads: options.readHeads?.(readHeads) ?? readHeads,
    stalledAfterMs: 15_000,
    seldomAfterMs: 10_000,
    hungAfterMs: 60_000,
    limits: new Map(restoreLimit ? [[NAME, restoreLimit]] : []),
    now: nowMs,
    reconnect: () => void events.push('connects anew'),
    onHung: (_, jobId) => void events.push(`${jobId} hangs`),
    logger,
  });
  broker.closes.push(async () => {
    await Promise.all(queues.map((queue) => queue.close()));
  });
  return { workers, handOver, processed, events, watch };
}
