import { startRedisCluster } from '@sluice/platform/redis-fleet';
import { describe } from 'vitest';
import { testFailover } from './queue-failover.ts';

describe('the queue on a Redis Cluster of six servers', () => {
  testFailover(startRedisCluster);
});
