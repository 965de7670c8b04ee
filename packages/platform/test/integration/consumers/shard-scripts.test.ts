/**
 * Scripts for commit batches of a shard in Redis.
 *
 * They take and end the batches.
 */
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import { createRedisShardBackend } from '@sluice/platform/consumers/queue-shard-backend';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { RedisQueueBackend, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openProducer } from '@sluice/platform/queue/queue';
import { ADD_MS_MAX, commitBatch, NAME, useBroker, WAIT } from '../support/broker-world.ts';

const broker = useBroker();
const LOCK_MS = 30_000;

const keyOf = (part: string): string => `${broker.connection().prefix}:${NAME}:${part}`;
const add = (...ids: string[]) =>
  broker.producer.addCommitBatches(ids.map((id) => ({ shard: 0, envelope: commitBatch(id) })));

/** Takes by hand. */
function takingWorker(): Worker {
  const worker = new Worker(
    NAME,
    null,
    { ...broker.connection(), autorun: false, lockDuration: LOCK_MS },
    createRedisShardBackend(broker.redis, () => undefined),
  );
  broker.closes.push(() => worker.close());
  return worker;
}

test('the end of a batch deletes all its keys, and takes the next batch', async () => {
  const worker = takingWorker();
  await broker.redis.hset(keyOf('meta'), 'concurrency', 1);
  await add('first', 'second');
  const first = await worker.getNextJob('one', { block: false });
  expect(first?.data).toEqual(commitBatch('first'));
  expect(await worker.getNextJob('two', { block: false })).toBeUndefined();
  const next = await first?.moveToCompleted(undefined, 'one', true);
  expect((next as unknown[])[1]).toBe('second');
  expect(await broker.redis.lrange(keyOf('active'), 0, -1)).toEqual(['second']);
  expect(await broker.redis.pttl(keyOf('second:lock'))).toBeGreaterThan(LOCK_MS / 2);
  const left = await broker.redis.keys(`${broker.connection().prefix}*`);
  expect(left.map((key) => key.slice(keyOf('').length)).toSorted()).toEqual(
    ['active', 'marker', 'meta', 'second', 'second:lock'].toSorted(),
  );
});

test('a batch whose lock is lost, or is of another worker, is not ended', async () => {
  const worker = takingWorker();
  await add('first');
  const job = await worker.getNextJob('one', { block: false });
  const end = (token: string) => job?.moveToCompleted(undefined, token, false);
  await expect(end('other')).rejects.toMatchObject({ code: -6 });
  await broker.redis.del(keyOf('first:lock'));
  await expect(end('one')).rejects.toMatchObject({ code: -2 });
  expect(await broker.redis.lrange(keyOf('active'), 0, -1)).toEqual(['first']);
  await broker.redis.set(keyOf('first:lock'), 'one');
  await broker.redis.lrem(keyOf('active'), 1, 'first');
  await expect(end('one')).rejects.toMatchObject({ code: -3 });
  await broker.redis.del(keyOf('first'));
  await expect(end('one')).rejects.toMatchObject({ code: -1 });
});

test('a place whose batch was deleted by hand does not hold up those behind it', async () => {
  const worker = takingWorker();
  await add('first', 'second');
  await broker.redis.del(keyOf('first'));
  expect((await worker.getNextJob('one', { block: false }))?.id).toBe('second');
  expect(await broker.redis.lrange(keyOf('active'), 0, -1)).toEqual(['second']);
});

test('a queue that is paused is not taken from', async () => {
  const worker = takingWorker();
  await add('first');
  await broker.redis.hset(keyOf('meta'), 'paused', 1);
  expect(await worker.getNextJob('one', { block: false })).toBeUndefined();
  await broker.redis.hdel(keyOf('meta'), 'paused');
  expect((await worker.getNextJob('one', { block: false }))?.id).toBe('first');
});

// BullMQ's script gives a sign with each job that it hands over: its worker asked once more for each.
test('a lone batch is waited for once, asked for once and ended once', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lone-batch-'));
  const server = await startRedisServer({ directory });
  broker.options = { ...broker.options, redisUrl: server.url };
  const own = new Redis(server.url);
  onTestFinished(async () => {
    own.disconnect();
    await server.kill();
    await rm(directory, { recursive: true, force: true });
  });
  // A look of the watch that meets a batch in progress would run this script too.
  const looks = vi
    .spyOn(RedisQueueBackend.prototype, 'moveStalledJobsToWait')
    .mockResolvedValue([]);
  onTestFinished(() => looks.mockRestore());
  const producer = await openProducer(broker.options, ADD_MS_MAX);
  const processed: string[] = [];
  const processors: Processors = {
    processCommitBatch: ({ id }) => {
      processed.push(id);
      return Promise.resolve({ outcome: 'done' });
    },
    wakeLane: () => Promise.resolve({ outcome: 'done' }),
    laneConcurrency: 1,
    now: Date.now,
  };
  const consumers = await startConsumers({ ...broker.options, stalledAfterMs: 60_000 }, processors);
  broker.closes.push(
    () => consumers.close(),
    () => producer.close(),
  );
  const calls = async () => {
    const stats = await own.info('commandstats');
    const of = (name: string) =>
      Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1]);
    return { waits: of('bzpopmin'), scripts: of('evalsha') };
  };
  const process = async (id: string): Promise<void> => {
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
    await vi.waitFor(async () => {
      expect(processed.at(-1)).toBe(id);
      const { prefix } = { prefix: `{${broker.options.prefix}-${NAME}}:${NAME}` };
      expect(await own.exists(`${prefix}:${id}`)).toBe(0);
    }, WAIT);
  };
  // A worker that opens its connection late waits for the first time after the others have worked.
  const allWait = () =>
    vi.waitFor(async () => {
      const blocked = /blocked_clients:(\d+)/.exec(await own.info('clients'))?.[1];
      expect(Number(blocked)).toBe(broker.options.shardCount + processors.laneConcurrency);
    }, WAIT);
  // Scripts go over whole the first time.
  await process('first');
  await process('second');
  await allWait();
  const before = await calls();
  for (const id of ['third', 'fourth', 'fifth']) await process(id);
  await allWait();
  // To add it, to take it and to end it.
  expect(await calls()).toEqual({ waits: before.waits + 3, scripts: before.scripts + 9 });
});
