import { once } from 'node:events';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { connectWorker, reconnect } from '@sluice/platform/redis/redis';
import type { RedisClient } from '@sluice/platform/redis/redis-client';
import { startRedisCluster } from '@sluice/platform/testing/redis-fleet';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { within } from '@sluice/platform/process/within';
import type { Cluster } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { testFailover } from '../support/queue-failover.ts';

const WAIT = { timeout: 30_000, interval: 50 };

/** Private members of a client. */
interface WithPool {
  readonly connectionPool: {
    findOrCreate(node: { host: string; port: number }): unknown;
    emit(event: 'drain'): void;
  };
}

describe('the queue on a Redis Cluster of six servers', () => {
  const fleet = testFailover(startRedisCluster);

  // A failover under way would have lost its acknowledged calls of that time.
  test('masters without replicas are not believed alone any sooner because the clock was set', async () => {
    const options = {
      databaseUrl: 'postgres://127.0.0.1:1/none',
      redisUrl: fleet().url,
      prefix: uniquePrefix(),
      shardCount: 1,
      logger: createLogger('test', 'silent'),
    };
    const begunAtMs = Date.now();
    const clock = vi.spyOn(Date, 'now');
    const producer = await openProducer(options, 1_000, { graceMs: 600_000 });
    const add = () =>
      producer.addCommitBatches([{ shard: 0, envelope: { id: 'envelope-a', operations: [] } }]);
    const masters = await fleet().masters();
    const replicas = (await Promise.all(masters.map((each) => fleet().replicasOf(each)))).flat();
    onTestFinished(async () => {
      clock.mockRestore();
      for (const { pid } of replicas) process.kill(pid, 'SIGCONT');
      await vi.waitFor(add, WAIT);
      await producer.close();
    });
    for (const { pid } of replicas) process.kill(pid, 'SIGSTOP');
    await Promise.all(masters.map((each) => each.command('CLIENT', 'KILL', 'TYPE', 'replica')));
    const REFUSED = { code: 'BROKER_UNAVAILABLE' };
    // Twice: the first is refused as soon as one master is found without a replica.
    await expect(add()).rejects.toMatchObject(REFUSED);
    await expect(add()).rejects.toMatchObject(REFUSED);
    clock.mockReturnValue(begunAtMs + 3_600_000);
    await expect(add()).rejects.toMatchObject(REFUSED);
  });

  test.each([
    ['a connection', (redis: RedisClient) => redis],
    ['a blocking connection of BullMQ', (redis: RedisClient) => (redis as Cluster).duplicate()],
  ] as const)('%s whose last node goes while it looks for the others goes on', async (_, of) => {
    const first = connectWorker(fleet().url);
    const redis = of(first);
    onTestFinished(() => [redis, first].forEach((each) => each.disconnect()));
    redis.on('error', () => undefined);
    await redis.ping();
    // As ioredis does with the end of a node that hung: it drops its attempt.
    const { connectionPool } = redis as unknown as WithPool;
    redis.once('connecting', () => connectionPool.emit('drain'));
    reconnect(redis);
    await vi.waitFor(() => expect(redis.status).toBe('close'), WAIT);
    expect(await within(20_000, redis.ping())).toBe('PONG');
  });

  test('a connection that is closed on purpose stays closed, though a node goes late', async () => {
    const redis = connectWorker(fleet().url);
    await redis.ping();
    const ended = once(redis, 'end');
    redis.disconnect();
    await ended;
    const connects = vi.spyOn(redis, 'connect');
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const closed = once(redis, 'close');
    (redis as unknown as WithPool).connectionPool.emit('drain');
    await closed;
    vi.advanceTimersByTime(60_000);
    expect(redis.status).toBe('close');
    expect(connects).not.toHaveBeenCalled();
  });

  test('a connection that learns of a moved slot while it connects anew goes on', async () => {
    const redis = connectWorker(fleet().url);
    redis.on('error', () => undefined);
    await redis.ping();
    const [master] = await fleet().masters();
    reconnect(redis);
    // As ioredis does with MOVED; it waits for its last node to go, and this one never will.
    const { connectionPool } = redis as unknown as WithPool;
    connectionPool.findOrCreate({ host: '127.0.0.1', port: master?.port ?? 0 });
    await vi.waitFor(async () => expect(await within(500, redis.ping())).toBe('PONG'), {
      timeout: 30_000,
      interval: 100,
    });
    redis.disconnect();
  });
});
