/** Adding to a Redis whose memory is nearly used up: real servers, whose bound is moved around their use. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openProducer, type AddingOptions, type Producer } from '../../../src/queue/queue.ts';
import { startRedisCluster } from '../../../src/testing/redis-fleet.ts';
import { memoryUseOf, RedisCapacity } from '../../../src/redis/redis-capacity.ts';
import { startRedisServer, type RedisServer } from '../../../src/testing/redis-server.ts';
import { ADD_MS_MAX, commitBatch, logger, WAIT } from '../support/broker-world.ts';

/** So much that the buffers of connections make no difference. */
const HELD_BYTES = 32 * 1_048_576;
const FULL = { code: 'BROKER_FULL' };

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-test-room-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Sets `maxmemory` so that its use is this part of it. */
async function boundAt(redis: Redis, fill: number): Promise<void> {
  const { usedBytes } = memoryUseOf(await redis.info('memory'));
  await redis.config('SET', 'maxmemory', Math.round(usedBytes / fill));
}

async function holdMuch(redis: Redis): Promise<void> {
  // As long as the whole, so that it is no query buffer afterwards.
  await redis.call('SETRANGE', 'held', HELD_BYTES, 'x');
}

test('the memory use leaves out the memory that Redis leaves out of its comparison', () => {
  const answer =
    'used_memory:900\r\nused_memory_rss:5\r\nmaxmemory:1000\r\nmem_not_counted_for_evict:150\r\n';
  expect(memoryUseOf(answer)).toEqual({ usedBytes: 750, limitBytes: 1_000 });
  expect(memoryUseOf('used_memory:7\r\nmaxmemory:0\r\n')).toEqual({ usedBytes: 7, limitBytes: 0 });
});

describe('one Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeEach(async () => {
    const path = await mkdtemp(join(tmpdir(), 'sluice-test-room-'));
    server = await startRedisServer({ directory: path });
    redis = new Redis(server.url);
    await holdMuch(redis);
    return async () => {
      redis.disconnect();
      await server.kill();
      await rm(path, { recursive: true, force: true });
    };
  });

  async function open(options: AddingOptions = {}): Promise<Producer> {
    const producer = await openProducer(
      {
        databaseUrl: 'postgres://127.0.0.1:1/none',
        redisUrl: server.url,
        prefix: 'room',
        shardCount: 1,
        logger,
      },
      ADD_MS_MAX,
      options,
    );
    onTestFinished(() => producer.close());
    return producer;
  }
  const add = (producer: Producer, id: string) =>
    producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
  /** An add may have a look under way, of before the bound was moved. */
  const waitUntilFull = (producer: Producer, isFull: boolean) =>
    vi.waitFor(async () => {
      const fill = await producer.fill();
      expect(fill).toMatchObject({ isFull });
      return fill;
    }, WAIT);

  test('refuses batches from its mark on, and accepts them again five points below it or without a bound', async () => {
    const producer = await open();
    expect(await producer.fill()).toEqual({ ratio: 0, isFull: false });
    await add(producer, 'a');

    await boundAt(redis, 0.88);
    await waitUntilFull(producer, false);
    await add(producer, 'b');

    await boundAt(redis, 0.92);
    const full = await waitUntilFull(producer, true);
    expect(full.ratio).toBeCloseTo(0.92, 2);
    await expect(add(producer, 'c')).rejects.toMatchObject(FULL);
    expect(await producer.commitBatchCounts()).toEqual([2]);
    // It would have taken it: the mark refuses, before Redis has to.
    await redis.set('proof', 'x');

    await boundAt(redis, 0.88);
    expect(await producer.fill()).toMatchObject({ isFull: true });
    await expect(add(producer, 'c')).rejects.toMatchObject(FULL);

    await boundAt(redis, 0.83);
    await waitUntilFull(producer, false);
    await add(producer, 'c');
    expect(await producer.commitBatchCounts()).toEqual([3]);
  });

  test('has the mark that it is given', async () => {
    const producer = await open({ fillPercentMax: 60 });
    await boundAt(redis, 0.65);
    expect(await producer.fill()).toMatchObject({ isFull: true });
  });

  test('is found full by the adds of a producer alone', async () => {
    const producer = await open();
    await boundAt(redis, 0.95);
    // The first of them goes through: the fill has not been read yet.
    await add(producer, 'a');
    await vi.waitFor(() => expect(add(producer, 'a')).rejects.toMatchObject(FULL), WAIT);
    await redis.config('SET', 'maxmemory', 0);
    await vi.waitFor(() => add(producer, 'b'), WAIT);
  });

  describe('looked at by a clock that stands still', () => {
    let nowMs = 0;
    let capacity: RedisCapacity;
    beforeEach(async () => {
      nowMs = 0;
      capacity = new RedisCapacity({
        redis,
        fillPercentMax: 90,
        monotonicNow: () => nowMs,
        logger,
      });
      await boundAt(redis, 0.5);
      await capacity.look();
      await boundAt(redis, 0.95);
    });
    /** Of 64 MB, a tenth is kept free, and a 64th of that is added between two looks. */
    const PART_BYTES = 104_858;
    const lookCount = async () =>
      Number(/^cmdstat_info:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1]);

    test('it is looked at again after a part of the free reserve is filled, and not before', async () => {
      const before = await lookCount();
      for (let added = 0; added < PART_BYTES / 2; added += 1_000) capacity.noticeAdded(1_000);
      // One is the question for the count itself.
      expect(await lookCount()).toBe(before + 1);
      expect(capacity.isFull).toBe(false);
      capacity.noticeAdded(PART_BYTES);
      await vi.waitFor(() => expect(capacity.isFull).toBe(true), WAIT);
    });

    test('it is looked at again at once after a failed add', async () => {
      capacity.noticeFailure();
      await vi.waitFor(() => expect(capacity.isFull).toBe(true), WAIT);
    });

    test('and after a second, however little is added, and however full it was', async () => {
      nowMs += 1_000;
      capacity.noticeAdded(1);
      await vi.waitFor(() => expect(capacity.isFull).toBe(true), WAIT);
      await redis.config('SET', 'maxmemory', 0);
      await expect(capacity.expectCapacity()).rejects.toMatchObject(FULL);
      nowMs += 1_000;
      await capacity.expectCapacity();
      expect(capacity.isFull).toBe(false);
    });

    test('a Redis that hides its memory use blocks no producer, is not asked more often, and causes one warning', async () => {
      const told: unknown[] = [];
      const warned = new RedisCapacity({
        redis,
        fillPercentMax: 90,
        monotonicNow: () => nowMs,
        logger: {
          info: () => undefined,
          warn: (_fields: unknown, text?: unknown) => void told.push(text),
        },
      });
      await warned.look();
      expect(warned.isFull).toBe(true);
      await redis.call('ACL', 'SETUSER', 'default', '-info');
      nowMs += 1_000;
      await warned.expectCapacity();
      await expect(warned.look()).rejects.toThrow('no master of Redis reports its memory');
      expect(told).toEqual([
        expect.stringContaining('Redis is full'),
        expect.stringContaining('does not allow INFO memory'),
      ]);
      const asked = vi.spyOn(redis, 'info');
      warned.noticeAdded(1_000_000_000);
      expect(asked).not.toHaveBeenCalled();
    });

    test('and one that stays between its marks is open again after ten seconds', async () => {
      await capacity.look();
      expect(capacity.isFull).toBe(true);
      await boundAt(redis, 0.87);
      nowMs += 9_000;
      await expect(capacity.expectCapacity()).rejects.toMatchObject(FULL);
      nowMs += 1_000;
      await capacity.expectCapacity();
      expect(capacity.isFull).toBe(false);
    });
  });
});

test('one full master of a Cluster shuts it for all shards: the next flush may touch every one', async () => {
  const fleet = await startRedisCluster(await directory(), 10_000);
  onTestFinished(() => fleet.close());
  const producer = await openProducer(
    {
      databaseUrl: 'postgres://127.0.0.1:1/none',
      redisUrl: fleet.url,
      prefix: 'room',
      shardCount: 12,
      logger,
    },
    ADD_MS_MAX,
  );
  onTestFinished(() => producer.close());
  const everyShard = (name: string) =>
    Array.from({ length: 12 }, (_, shard) => ({
      shard,
      envelope: commitBatch(`${name}-${shard}`),
    }));
  await producer.addCommitBatches(everyShard('a'));

  for (const master of await fleet.masters()) {
    // The use of an empty one is well above nine tenths of a byte.
    await master.command('CONFIG', 'SET', 'maxmemory', '1');
    // An add may have a look under way, of before the bound was moved.
    await vi.waitFor(
      async () => expect(await producer.fill()).toMatchObject({ isFull: true }),
      WAIT,
    );
    await expect(producer.addCommitBatches(everyShard('b'))).rejects.toMatchObject(FULL);
    expect(await producer.commitBatchCounts()).toEqual(Array.from({ length: 12 }, () => 1));
    await master.command('CONFIG', 'SET', 'maxmemory', '0');
    await vi.waitFor(
      async () => expect(await producer.fill()).toEqual({ ratio: 0, isFull: false }),
      WAIT,
    );
  }
  await producer.addCommitBatches(everyShard('b'));
}, 120_000);
