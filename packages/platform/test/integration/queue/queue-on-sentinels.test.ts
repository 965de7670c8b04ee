import { startRedisSentinels } from '@sluice/platform/testing/redis-fleet';
import { describe } from 'vitest';
import { testFailover } from '../support/queue-failover.ts';

describe('the queue on three Redis servers watched by three Sentinels', () => {
  testFailover(startRedisSentinels);
});
