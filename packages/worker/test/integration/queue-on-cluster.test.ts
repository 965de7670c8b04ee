import { connectWorker, reconnect } from '@sluice/platform/redis';
import { startRedisCluster } from '@sluice/platform/redis-fleet';
import { within } from '@sluice/platform/within';
import { describe, expect, test, vi } from 'vitest';
import { testFailover } from './queue-failover.ts';

/** What is private of a client. */
interface WithPool {
  readonly connectionPool: { findOrCreate(node: { host: string; port: number }): unknown };
}

describe('the queue on a Redis Cluster of six servers', () => {
  const fleet = testFailover(startRedisCluster);

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
      timeout: 15_000,
      interval: 100,
    });
    redis.disconnect();
  });
});
