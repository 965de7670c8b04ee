import { connectWorker, reconnect } from '@sluice/platform/redis';
import { startRedisCluster } from '@sluice/platform/redis-fleet';
import { within } from '@sluice/platform/within';
import type { Cluster } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { testFailover } from './queue-failover.ts';

interface WithPool {
  readonly connectionPool: { findOrCreate(node: { host: string; port: number }): unknown };
}

describe('the queue on a Redis Cluster of six servers', () => {
  const fleet = testFailover(startRedisCluster);

  test('a connection that learns of a moved slot while it connects anew goes on', async () => {
    const redis = connectWorker(fleet().url) as Cluster & WithPool;
    redis.on('error', () => undefined);
    await redis.ping();
    const [master] = await fleet().masters();
    reconnect(redis);
    // As ioredis does with MOVED; it waits for its last node to go, and this one never will.
    redis.connectionPool.findOrCreate({ host: '127.0.0.1', port: master?.port ?? 0 });
    await vi.waitFor(async () => expect(await within(500, redis.ping())).toBe('PONG'), {
      timeout: 15_000,
      interval: 100,
    });
    redis.disconnect();
  });
});
