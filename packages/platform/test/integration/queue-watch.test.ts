/** The watch over the queues, with real BullMQ workers whose loops are ended and stopped under it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Envelope } from '@sluice/domain/operation';
import { createLogger } from '@sluice/platform/logger';
import {
  LANE_QUEUE_NAME,
  openProducer,
  redisPrefix,
  shardQueueName,
  type BrokerOptions,
  type Producer,
} from '@sluice/platform/queue';
import { startConsumers, type Consumers } from '@sluice/platform/queue-consumers';
import type { Processors } from '@sluice/platform/queue-processors';
import { redisHeads } from '@sluice/platform/queue-heads';
import { QueueWatch } from '@sluice/platform/queue-watch';
import { connectWorker, type RedisClient } from '@sluice/platform/redis';
import { startRedisCluster } from '@sluice/platform/redis-fleet';
import { startRedisServer } from '@sluice/platform/redis-server';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing';
import { WatchedQueue } from '@sluice/platform/watched-queue';
import { Queue, UnrecoverableError, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

const WAIT = { timeout: 10_000, interval: 10 };
const NAME = shardQueueName(0);
const logger = createLogger('test', 'silent');
const envelope = (id: string): Envelope => ({ id, operations: [] });

let options: BrokerOptions;
let producer: Producer;
let redis: RedisClient;
const closes: (() => Promise<void>)[] = [];

beforeEach(async () => {
  options = {
    databaseUrl: 'postgres://127.0.0.1:1/none',
    redisUrl: testRedisUrl(),
    prefix: uniquePrefix(),
    shardCount: 1,
    logger,
  };
  producer = await openProducer(options);
  redis = connectWorker(testRedisUrl());
  await redis.ping();
});
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
  await producer.close();
  redis.disconnect();
});

const connection = () => ({ connection: redis, prefix: redisPrefix(options.prefix, NAME) });

/** A queue that is watched, its workers as they were opened, and what they processed. */
function watchOne(nowMs: () => number, loops: 'run' | 'first hangs' | 'hang') {
  const workers: Worker[] = [];
  const processed: string[] = [];
  const queue = new WatchedQueue({
    name: NAME,
    concurrency: 1,
    process(job) {
      processed.push(String(job.id));
      return Promise.resolve();
    },
    openWorker(process) {
      const worker = new Worker(NAME, process, {
        ...connection(),
        autorun: false,
        skipStalledCheck: true,
      });
      worker.on('error', () => undefined);
      if (loops === 'hang' || (loops === 'first hangs' && workers.length === 0))
        worker.run = () => new Promise(() => {});
      workers.push(worker);
      return worker;
    },
    now: nowMs,
    logger,
  });
  const watch = new QueueWatch({
    queues: [queue],
    readHeads: redisHeads(
      redis,
      (name, part) => `${redisPrefix(options.prefix, name)}:${name}:${part}`,
    ),
    stalledAfterMs: 15_000,
    seldomAfterMs: 10_000,
    hungAfterMs: 60_000,
    now: nowMs,
    reconnect: () => undefined,
    onHung: () => undefined,
    logger,
  });
  closes.push(() => queue.close());
  return { workers, processed, watch };
}

test('a worker whose loop has ended is replaced at the next look, and the queue goes on', async () => {
  const { workers, processed, watch } = watchOne(Date.now, 'run');
  await workers[0]?.close();
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await vi.waitFor(async () => {
    await watch.look();
    expect(workers).toHaveLength(2);
  }, WAIT);
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
  expect(watch.report().replacedWorkers).toBe(1);
});

test('a worker that takes nothing though jobs wait is replaced after the stall time, not before', async () => {
  let nowMs = 1_000_000;
  const { workers, processed, watch } = watchOne(() => nowMs, 'first hangs');
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await watch.look();
  nowMs += 14_999;
  await watch.look();
  expect(workers).toHaveLength(1);
  expect(watch.report()).toMatchObject({ stuckQueues: [], replacedWorkers: 0 });
  nowMs += 1;
  await watch.look();
  expect(workers).toHaveLength(2);
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
});

// As where Redis' memory is full: what takes a job is refused, whoever asks.
test('a queue whose workers are replaced again and again and take nothing is told of as stuck', async () => {
  let nowMs = 1_000_000;
  const { workers, watch } = watchOne(() => nowMs, 'hang');
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  for (let look = 0; look < 3; look++) {
    await watch.look();
    nowMs += 15_000;
  }
  expect(workers).toHaveLength(3);
  expect(watch.report()).toMatchObject({ stuckQueues: [NAME], replacedWorkers: 2 });
});

test('nothing queued, nothing in hand: one look in two thirds of the stall time, until something happens', async () => {
  let nowMs = 1_000_000;
  const { watch } = watchOne(() => nowMs, 'first hangs');
  const readHeads = vi.spyOn(redis, 'lindex');
  const looksIn = async (seconds: number): Promise<number> => {
    readHeads.mockClear();
    for (let second = 0; second < seconds; second++) {
      nowMs += 1_000;
      await watch.look();
    }
    return readHeads.mock.calls.length;
  };
  expect(await looksIn(14)).toBe(14);
  await looksIn(1);
  expect(await looksIn(60)).toBe(6);
  watch.rouse();
  expect(await looksIn(14)).toBe(14);
  await looksIn(60);
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await looksIn(10);
  expect(await looksIn(5)).toBe(5);
});

test('a queue that stands is named until it moves', async () => {
  let nowMs = 1_000_000;
  const { watch } = watchOne(() => nowMs, 'first hangs');
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await watch.look();
  nowMs += 30_001;
  expect(watch.report().stuckQueues).toEqual([NAME]);
  await watch.look();
  await vi.waitFor(async () => {
    await watch.look();
    expect(watch.report().stuckQueues).toEqual([]);
    expect(await redis.llen(`${redisPrefix(options.prefix, NAME)}:${NAME}:wait`)).toBe(0);
  }, WAIT);
});

async function consume(
  processors: Partial<Processors>,
  more: { hungAfterMs?: number; failedRetryIntervalMs?: number } = {},
): Promise<Consumers> {
  const consumers = await startConsumers(
    { ...options, stalledAfterMs: 1_500, ...more },
    {
      processEnvelope: () => Promise.resolve({ outcome: 'done' }),
      wakeLane: () => Promise.resolve({ outcome: 'done' }),
      laneConcurrency: 1,
      now: Date.now,
      ...processors,
    },
  );
  closes.push(() => consumers.close());
  return consumers;
}

// Several workers share a shard: without its limit they would apply one person's calls side by side.
test('a Redis that comes back without its data is told again that a shard goes one at a time', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lost-redis-'));
  const first = await startRedisServer({ directory });
  const { port } = first;
  options = { ...options, redisUrl: first.url };
  const limit = async (): Promise<string | null> => {
    const own = new Redis(first.url, { retryStrategy: null });
    try {
      return await own.hget(`${redisPrefix(options.prefix, NAME)}:${NAME}:meta`, 'concurrency');
    } finally {
      own.disconnect();
    }
  };
  await consume({});
  expect(await limit()).toBe('1');
  await first.kill();
  await rm(directory, { recursive: true });
  const second = await startRedisServer({ directory, port });
  closes.push(async () => {
    await second.kill();
    await rm(directory, { recursive: true, force: true });
  });
  await vi.waitFor(async () => expect(await limit()).toBe('1'), WAIT);
});

// Its client says only when all of it is there again.
test('so is one node of a Cluster', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lost-node-'));
  const fleet = await startRedisCluster(directory);
  options = { ...options, redisUrl: fleet.url };
  const own = connectWorker(fleet.url);
  closes.push(async () => {
    own.disconnect();
    await fleet.close();
    await rm(directory, { recursive: true, force: true });
  });
  const limit = () => own.hget(`${redisPrefix(options.prefix, NAME)}:${NAME}:meta`, 'concurrency');
  await consume({});
  expect(await limit()).toBe('1');
  for (const master of await fleet.masters()) {
    const keys = (await master.command('KEYS', `*:${NAME}:meta`)) as string[];
    if (keys.length === 0) continue;
    await master.command('FLUSHALL');
    await master.command('CLIENT', 'KILL', 'TYPE', 'normal');
  }
  await vi.waitFor(async () => expect(await limit()).toBe('1'), WAIT);
}, 60_000);

test('a try that does not end is told once, and the queue counts as stuck', async () => {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const hung: string[] = [];
  const consumers = await consume(
    {
      processEnvelope: async () => {
        await held;
        return { outcome: 'done' };
      },
      onHung: (queue, jobId) => void hung.push(`${queue} ${jobId}`),
    },
    { hungAfterMs: 300 },
  );
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await vi.waitFor(() => expect(consumers.report().stuckQueues).toEqual([NAME]), WAIT);
  await vi.waitFor(() => expect(hung).toEqual([`${NAME} envelope-a`]), WAIT);
  letGo();
  await vi.waitFor(() => expect(consumers.report().stuckQueues).toEqual([]), WAIT);
  expect(hung).toHaveLength(1);
});

test('a lane that asks whether its place is wanted does not hang, and has no place once its job has ended', async () => {
  const hung: string[] = [];
  const wanted: boolean[] = [];
  let isGivenBack = false;
  let ask = (): boolean => false;
  const askForSomeTime = async (): Promise<void> => {
    // Three times as long as a try may take without a sign.
    for (let asked = 0; asked < 45; asked++) {
      wanted.push(ask());
      await new Promise((resolve) => setTimeout(resolve, 20));
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
    },
    { hungAfterMs: 300 },
  );
  await producer.wakeLane({ environmentId: 1, webhookId: 1 });
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
  await consume({
    laneConcurrency: 20,
    wakeLane: async (_, isPlaceWanted) => {
      asks.push(isPlaceWanted);
      await new Promise<void>((resolve) => ends.push(resolve));
      return { outcome: 'done' };
    },
  });
  const wake = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, place) =>
        producer.wakeLane({ environmentId: 1, webhookId: 100 * count + place }),
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
  const prefix = `${redisPrefix(options.prefix, LANE_QUEUE_NAME)}:${LANE_QUEUE_NAME}`;
  const [waitingCount, activeCount] = await Promise.all([
    redis.llen(`${prefix}:wait`),
    redis.llen(`${prefix}:active`),
  ]);
  return { waitingCount, activeCount };
}

test('an envelope that ended badly runs again, one that was discarded never does', async () => {
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-a') }], false);
  await producer.addEnvelopes([{ shard: 0, envelope: envelope('envelope-b') }], false);
  // As where BullMQ takes a connection that broke while a job was completed for a failure of the job.
  const worker = new Worker(
    NAME,
    (job) =>
      Promise.reject(
        job.id === 'envelope-a'
          ? new Error('Connection is closed')
          : new UnrecoverableError('discarded: unreadable'),
      ),
    connection(),
  );
  worker.on('error', () => undefined);
  const queue = new Queue(NAME, connection());
  closes.push(() => queue.close());
  await vi.waitFor(async () => expect(await queue.getFailedCount()).toBe(2), WAIT);
  await worker.close();

  const processed: string[] = [];
  await consume(
    {
      processEnvelope: ({ id }) => {
        processed.push(id);
        return Promise.resolve({ outcome: 'done' });
      },
    },
    { failedRetryIntervalMs: 50 },
  );
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
  await vi.waitFor(async () => expect(await queue.getFailedCount()).toBe(1), WAIT);
  expect((await queue.getFailed())[0]?.id).toBe('envelope-b');
});
