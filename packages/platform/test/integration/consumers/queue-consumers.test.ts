/**
 * Consumers of jobs, with a watch and a Redis of their own: jobs that hang, end badly or are many, and a Redis that is
 * empty.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LANE_QUEUE_NAME, openProducer, redisPrefix } from '@sluice/platform/queue/queue';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import { connectWorker } from '@sluice/platform/redis/redis';
import { startRedisCluster } from '@sluice/platform/testing/redis-fleet';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ADD_MS_MAX, commitBatch, NAME, useBroker, WAIT } from '../support/broker-world.ts';

const broker = useBroker();
/** A lock of a job then outlives a standstill of a busy machine, and no job begins twice. */
const LASTING = { stalledAfterMs: 6_000 };

async function consume(
  processors: Partial<Processors>,
  more: { stalledAfterMs?: number; hungAfterMs?: number; failedRetryIntervalMs?: number } = {},
): Promise<Consumers> {
  const consumers = await startConsumers(
    { ...broker.options, stalledAfterMs: 1_500, ...more },
    {
      processCommitBatch: () => Promise.resolve({ outcome: 'done' }),
      wakeLane: () => Promise.resolve({ outcome: 'done' }),
      laneConcurrency: 1,
      now: Date.now,
      ...processors,
    },
  );
  broker.closes.push(() => consumers.close());
  return consumers;
}

// Several workers share a shard: without its limit they would apply one person's calls side by side.
test('a Redis that comes back without its data gets the concurrency limit of its shards again', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lost-redis-'));
  const first = await startRedisServer({ directory });
  const { port } = first;
  broker.options = { ...broker.options, redisUrl: first.url };
  const limit = async (): Promise<string | null> => {
    const own = new Redis(first.url, { retryStrategy: null });
    try {
      return await own.hget(
        `${redisPrefix(broker.options.prefix, NAME)}:${NAME}:meta`,
        'concurrency',
      );
    } finally {
      own.disconnect();
    }
  };
  await consume({});
  expect(await limit()).toBe('1');
  await first.kill();
  await rm(directory, { recursive: true });
  const second = await startRedisServer({ directory, port });
  broker.closes.push(async () => {
    await second.kill();
    await rm(directory, { recursive: true, force: true });
  });
  await vi.waitFor(async () => expect(await limit()).toBe('1'), WAIT);
});

// Without a sign to clients: the connections stay as they are.
test('so is one that is emptied while it goes on', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-emptied-redis-'));
  const server = await startRedisServer({ directory });
  broker.options = { ...broker.options, redisUrl: server.url };
  const own = new Redis(server.url);
  // After the consumers, which report their end to the server.
  onTestFinished(async () => {
    own.disconnect();
    await server.kill();
    await rm(directory, { recursive: true, force: true });
  });
  const meta = `${redisPrefix(broker.options.prefix, NAME)}:${NAME}:meta`;
  const processed: string[] = [];
  await consume({
    processCommitBatch: ({ id }) => {
      processed.push(id);
      return Promise.resolve({ outcome: 'done' });
    },
  });
  const producer = await openProducer(broker.options, ADD_MS_MAX);
  broker.closes.push(() => producer.close());
  const add = (id: string) => producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
  await add('before');
  await vi.waitFor(() => expect(processed).toEqual(['before']), WAIT);
  await own.flushall();
  await vi.waitFor(async () => expect(await own.hget(meta, 'concurrency')).toBe('1'), WAIT);
  await add('after');
  await vi.waitFor(() => expect(processed).toEqual(['before', 'after']), WAIT);
});

// Its client reports only when all of it is there again.
test('so is one node of a Cluster', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lost-node-'));
  // A node that stands still for seconds keeps its place.
  const fleet = await startRedisCluster(directory, 10_000);
  broker.options = { ...broker.options, redisUrl: fleet.url };
  const own = connectWorker(fleet.url);
  broker.closes.push(async () => {
    own.disconnect();
    await fleet.close();
    await rm(directory, { recursive: true, force: true });
  });
  const limit = () =>
    own.hget(`${redisPrefix(broker.options.prefix, NAME)}:${NAME}:meta`, 'concurrency');
  await consume({});
  expect(await limit()).toBe('1');
  for (const master of await fleet.masters()) {
    const keys = (await master.command('KEYS', `*:${NAME}:meta`)) as string[];
    if (keys.length === 0) continue;
    await master.command('FLUSHALL');
    await master.command('CLIENT', 'KILL', 'TYPE', 'normal');
  }
  await vi.waitFor(async () => expect(await limit()).toBe('1'), WAIT);
}, 120_000);

test('a try that does not end is reported once, and its queue counts as stuck', async () => {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const hung: string[] = [];
  const consumers = await consume(
    {
      processCommitBatch: async () => {
        await held;
        return { outcome: 'done' };
      },
      onHung: (queue, jobId) => void hung.push(`${queue} ${jobId}`),
    },
    { ...LASTING, hungAfterMs: 300 },
  );
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  await vi.waitFor(() => expect(consumers.report().stuckQueues).toEqual([NAME]), WAIT);
  await vi.waitFor(() => expect(hung).toEqual([`${NAME} envelope-a`]), WAIT);
  letGo();
  await vi.waitFor(() => expect(consumers.report().stuckQueues).toEqual([]), WAIT);
  expect(hung).toHaveLength(1);
});

test('a lane that asks whether its place is wanted does not hang, and has no place once its job has ended', async () => {
  // The time goes on with the asking alone, so that a standstill of the machine is no time without a sign.
  let nowMs = Date.now();
  const hung: string[] = [];
  const wanted: boolean[] = [];
  let isGivenBack = false;
  let ask = (): boolean => false;
  const askForSomeTime = async (): Promise<void> => {
    // Three times as long as a try may take without a sign.
    for (let asked = 0; asked < 45; asked++) {
      wanted.push(ask());
      await new Promise((resolve) => setTimeout(resolve, 20));
      nowMs += 20;
    }
  };
  await consume(
    {
      wakeLane: async (_, isPlaceWanted) => {
        ask = isPlaceWanted;
        await askForSomeTime();
        isGivenBack = true;
        return { outcome: 'done' };
      },
      onHung: (queue, jobId) => void hung.push(`${queue} ${jobId}`),
      now: () => nowMs,
    },
    { ...LASTING, hungAfterMs: 300 },
  );
  await broker.producer.wakeLane({ environmentId: 1, webhookId: 1 });
  await vi.waitFor(() => expect(isGivenBack).toBe(true), WAIT);
  expect(new Set(wanted)).toEqual(new Set([true]));
  await vi.waitFor(() => expect(ask()).toBe(false), WAIT);
  wanted.length = 0;
  await askForSomeTime();
  expect(new Set(wanted)).toEqual(new Set([false]));
  expect(hung).toEqual([]);
});

test('lanes are as many at the same time as the process may drain, and only then is a place wanted', async () => {
  const ends: (() => void)[] = [];
  const asks: (() => boolean)[] = [];
  await consume(
    {
      laneConcurrency: 20,
      wakeLane: async (_, isPlaceWanted) => {
        asks.push(isPlaceWanted);
        await new Promise<void>((resolve) => ends.push(resolve));
        return { outcome: 'done' };
      },
    },
    LASTING,
  );
  const wake = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, place) =>
        broker.producer.wakeLane({ environmentId: 1, webhookId: 100 * count + place }),
      ),
    );
  await wake(19);
  await vi.waitFor(() => expect(asks).toHaveLength(19), WAIT);
  expect(asks.some((ask) => ask())).toBe(false);
  await wake(5);
  await vi.waitFor(() => expect(asks).toHaveLength(20), WAIT);
  expect(asks.every((ask) => ask())).toBe(true);
  const { waitingCount } = await laneQueueState();
  expect(waitingCount).toBe(4);
  for (let ended = 0; ended < 24; ended++) {
    await vi.waitFor(() => expect(ends.length).toBeGreaterThan(ended), WAIT);
    ends[ended]?.();
  }
  await vi.waitFor(async () => expect((await laneQueueState()).activeCount).toBe(0), WAIT);
  expect(asks).toHaveLength(24);
});

async function laneQueueState(): Promise<{ waitingCount: number; activeCount: number }> {
  const prefix = `${redisPrefix(broker.options.prefix, LANE_QUEUE_NAME)}:${LANE_QUEUE_NAME}`;
  const [waitingCount, activeCount] = await Promise.all([
    broker.redis.llen(`${prefix}:wait`),
    broker.redis.llen(`${prefix}:active`),
  ]);
  return { waitingCount, activeCount };
}

test('a commit batch that ended badly runs again', async () => {
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  // BullMQ does so if it takes a connection that broke while a job was completed for a failure of the job.
  const worker = new Worker(
    NAME,
    () => Promise.reject(new Error('Connection is closed')),
    broker.connection(),
  );
  worker.on('error', () => undefined);
  const queue = new Queue(NAME, broker.connection());
  broker.closes.push(() => queue.close());
  await vi.waitFor(async () => expect(await queue.getFailedCount()).toBe(1), WAIT);
  await worker.close();

  const processed: string[] = [];
  await consume(
    {
      processCommitBatch: ({ id }) => {
        processed.push(id);
        return Promise.resolve({ outcome: 'done' });
      },
    },
    { failedRetryIntervalMs: 50 },
  );
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
  await vi.waitFor(async () => expect(await queue.getFailedCount()).toBe(0), WAIT);
});
