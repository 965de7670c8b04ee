/**
 * The taking side of the broker: starts the workers of every shard, of the lanes and of purchases (`queue-workers.ts`),
 * has them watched, and ends them.
 *
 * Each shard has global concurrency 1, so its commit batches run one at a time and in order, in any process. A job that
 * cannot be done yet (Postgres away) is tried again *in place*: BullMQ's own retry moves it to "delayed", and the next
 * commit batch would overtake it.
 *
 * Before: `queue.ts`. After: `queue-workers.ts`.
 */
import type { Queue } from 'bullmq';
import { connectionWarnings } from '../redis/connection-warnings.ts';
import type { Logger } from '../process/logger.ts';
import { FailingTries, type Failing } from '../process/failing-tries.ts';
import { FailedCommitBatches } from './queue-failed.ts';
import { PendingBatches } from './pending-batches.ts';
import type { Processors } from './queue-processors.ts';
import { openTakingSide, type TakingSide } from './queue-taking.ts';
import { QueueWatch, type WatchReport } from './queue-watch.ts';
import { openWorkers } from './queue-workers.ts';
import type { BrokerOptions } from '../queue/broker-options.ts';
import { shardQueueName } from '../queue/queue.ts';
import { repeat } from '../process/repeat.ts';
import type { WatchedQueue } from './watched-queue.ts';
import { within } from '../process/within.ts';

/** On Postgres: one of the shards, one of the lanes, one of their ranges, one of purchases. */
const LISTENER_COUNT = 4;
const STALLED_AFTER_MS = 15_000;
const HUNG_AFTER_MS = 60_000;
const LOOK_INTERVAL_MS_MAX = 1_000;
const STATEMENT_DEADLINE_MS_MIN = 5_000;
const LEAVE_DEADLINE_MS = 3_000;
const FAILED_RETRY_INTERVAL_MS = 10_000;
const FORGET_INTERVAL_MS = 60_000;

export interface ConsumerOptions extends BrokerOptions {
  /** A try that takes so long counts as hung. 60 s by default. */
  readonly hungAfterMs?: number;
  /** Interval of the search for commit batches that ended badly. 10 s by default. */
  readonly failedRetryIntervalMs?: number;
}

export interface ConsumerReport extends WatchReport {
  readonly failing: Failing | undefined;
}

export interface Consumers {
  /** Waiting commit batches of all shards. */
  readonly pending: PendingBatches;
  /** Findings of the watch over the queues, and whether commit batches get through. */
  report(): ConsumerReport;
  /** Prefixes of the locks of this process. One more if a worker is replaced. */
  brokerWorkerIds(): readonly string[];
  /** Puts the jobs of a dead process back to the heads of their queues, by its `brokerWorkerIds`. @returns how many. */
  putBackJobsOf(brokerWorkerIds: readonly string[]): Promise<number>;
  /**
   * Takes no new job, waits for jobs in progress. One that waits to be tried again goes back to the head of its queue. May
   * be called twice.
   */
  close(): Promise<void>;
}

/**
 * Starts taking jobs of every shard, of the lanes and, if asked to, of purchases. Sets each shard's global concurrency to 1
 * first.
 */
export async function startConsumers(
  options: ConsumerOptions,
  processors: Processors,
): Promise<Consumers> {
  const { logger, stalledAfterMs = STALLED_AFTER_MS, hungAfterMs = HUNG_AFTER_MS } = options;
  const { now } = processors;
  const warnOfConnection = connectionWarnings(logger);
  const side = openTakingSide(
    options,
    LISTENER_COUNT,
    warnOfConnection,
    // A statement that a broken network swallowed must end before the stall time does.
    Math.max(STATEMENT_DEADLINE_MS_MIN, Math.round(stalledAfterMs / 2)),
  );
  const isRedis = side.kind === 'redis';
  const closing = new AbortController();

  const shardNames = Array.from({ length: options.shardCount }, (_, shard) =>
    shardQueueName(shard),
  );
  const openShardQueue = async (name: string): Promise<Queue> => {
    const queue = side.openQueue(name);
    queue.on('error', (error) => warnOfConnection(error, name));
    await goOneAtATime(queue);
    return queue;
  };
  const shardQueues = await Promise.all(shardNames.map(openShardQueue));
  const failed = new FailedCommitBatches({
    queues: shardQueues,
    intervalMs: options.failedRetryIntervalMs ?? FAILED_RETRY_INTERVAL_MS,
    deadlineMs: stalledAfterMs,
    logger,
  });

  const pending = new PendingBatches(side.pendingLog, side.readBatches, now);
  side.onTaking(() => pending.readAhead());
  const failing = new FailingTries(now, hungAfterMs, logger);
  const queues = openWorkers(shardNames, {
    side,
    processors,
    pending,
    failing,
    stalledAfterMs,
    hungAfterMs,
    closing: closing.signal,
    onFailed: () => failed.notice(),
    warnOfConnection,
    logger,
  });

  const watch = new QueueWatch({
    queues,
    readHeads: side.readHeads,
    stalledAfterMs,
    // As long as a lock, so that a dead worker is found no later than by a look each period. On Postgres more often: one
    // statement reads all heads, else each waiting worker would ask for its own.
    seldomAfterMs: isRedis ? (stalledAfterMs * 2) / 3 : stalledAfterMs / 3,
    hungAfterMs,
    limits: new Map(shardQueues.map((queue) => [queue.name, () => goOneAtATime(queue)])),
    now,
    reconnect: () => side.reconnect(),
    onHung: (queue, jobId) => processors.onHung?.(queue, jobId),
    logger,
  });
  side.onClosed(() => watch.rouse());
  side.onReady(() => {
    Promise.all(shardQueues.map(goOneAtATime)).catch((error: Error) => warnOfConnection(error));
  });
  const looks = repeat(
    'look at the queues',
    Math.min(LOOK_INTERVAL_MS_MAX, stalledAfterMs / 15),
    logger,
    () => watch.look(),
  );

  const forgetting = repeat('forget applied batches', FORGET_INTERVAL_MS, logger, () =>
    pending.sweep(),
  );

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    closing.abort();
    const stops = [looks.stop(), failed.stop(), forgetting.stop()];
    await leave(side, queues, stops, logger);
    await Promise.all(shardQueues.map((queue) => queue.close()));
    // A connection that a broken worker took along is not given back; it ends with the process.
    await within(LEAVE_DEADLINE_MS, side.close()).catch(() => undefined);
  };
  return {
    pending,
    report: () => ({ ...watch.report(), failing: failing.report() }),
    brokerWorkerIds: () => queues.flatMap(({ workerIds }) => workerIds),
    putBackJobsOf: (ids) => watch.putBackJobsOf(ids),
    close: () => (closed ??= close()),
  };
}

/**
 * Closes the queues: waits for the jobs in progress as long as they take, but for the broker no longer than the
 * deadline.
 */
async function leave(
  side: TakingSide,
  queues: readonly WatchedQueue[],
  stops: readonly Promise<void>[],
  logger: Logger,
): Promise<void> {
  const closes = Promise.all([...stops, ...queues.map((queue) => queue.close())]);
  await Promise.all(queues.map((queue) => queue.emptyHanded()));
  // The last step is a message to the broker. BullMQ would wait for one that is away until it is back.
  await within(LEAVE_DEADLINE_MS, closes).catch(() => {
    logger.warn(
      {},
      'the broker did not confirm that this worker leaves; its jobs return when their locks end',
    );
  });
  side.leave();
  await within(LEAVE_DEADLINE_MS, closes).catch((error: unknown) => {
    logger.warn(
      { error },
      'a queue worker did not close in time; its jobs return when their locks end',
    );
  });
}

/** Kept by the broker. It is read first: a Redis whose memory is full takes no setting, and the start must not end there. */
async function goOneAtATime(queue: Queue): Promise<void> {
  if ((await queue.getGlobalConcurrency()) !== 1) await queue.setGlobalConcurrency(1);
}
