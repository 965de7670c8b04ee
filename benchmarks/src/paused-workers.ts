/**
 * One worker on each broker, paused (SIGSTOP) while commit batches queue up. The workers run one after the other: a
 * stopped process takes no CPU. Used by the benchmarks of a worker's operations.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { cpuSecondsOf, type ChildServer } from './child-server.ts';
import { countOf } from './copy-floor.ts';
import type { World } from './world.ts';

export const BACKENDS = ['redis', 'postgres'] as const;
export type Backend = (typeof BACKENDS)[number];

export interface ProcessedBatches {
  readonly seconds: number;
  /** Of one core. */
  readonly workerCpu: number;
}

export interface PausedWorkers {
  /** Queues by `enqueue`, which returns how many commit batches it made, and measures until they are applied. */
  process(
    backend: Backend,
    enqueue: (producer: Producer) => Promise<number>,
  ): Promise<ProcessedBatches>;
  /** Queues while the worker runs, and returns when its queues are empty: for people and warm code. */
  warmUp(backend: Backend, enqueue: (producer: Producer) => Promise<number>): Promise<void>;
}

export async function startPausedWorkers(world: World, shardCount: number): Promise<PausedWorkers> {
  const { database, databaseUrl, redisServer } = world;
  const openBroker = async (backend: Backend): Promise<Producer> => {
    const producer = await openProducer(
      {
        databaseUrl,
        redisUrl: backend === 'redis' ? redisServer.url : undefined,
        prefix: 'bench',
        shardCount,
        logger: createLogger('bench', 'warn'),
      },
      60_000,
    );
    world.onClose(() => producer.close());
    return producer;
  };
  const startWorker = (backend: Backend, port: number): Promise<ChildServer> =>
    world.startService('worker', port, {
      ...(backend === 'redis' ? { REDIS_URL: redisServer.url } : {}),
      QUEUE_PREFIX: 'bench',
      SHARD_COUNT: String(shardCount),
    });
  const producers: Record<Backend, Producer> = {
    redis: await openBroker('redis'),
    postgres: await openBroker('postgres'),
  };
  const workers: Record<Backend, ChildServer> = {
    redis: await startWorker('redis', 18091),
    postgres: await startWorker('postgres', 18092),
  };
  // One that is stopped could not end.
  world.onClose(() => {
    for (const { pids } of Object.values(workers))
      pids.forEach((pid) => process.kill(pid, 'SIGCONT'));
  });

  return {
    async process(backend, enqueue) {
      const [pid] = workers[backend].pids as [number];
      process.kill(pid, 'SIGSTOP');
      const appliedBefore = await countOf(database, 'envelopes');
      const commitBatchCount = await enqueue(producers[backend]);
      const cpuBefore = await cpuSecondsOf(pid);
      const startedAt = performance.now();
      process.kill(pid, 'SIGCONT');
      while ((await countOf(database, 'envelopes')) - appliedBefore < commitBatchCount)
        await sleep(10);
      const seconds = (performance.now() - startedAt) / 1_000;
      const workerCpu = ((await cpuSecondsOf(pid)) - cpuBefore) / seconds;
      await untilQueuesAreEmpty(producers[backend]);
      return { seconds, workerCpu };
    },
    async warmUp(backend, enqueue) {
      await enqueue(producers[backend]);
      await untilQueuesAreEmpty(producers[backend]);
    },
  };
}

async function untilQueuesAreEmpty(producer: Producer): Promise<void> {
  while ((await producer.commitBatchCounts()).some((count) => count > 0)) await sleep(20);
}
