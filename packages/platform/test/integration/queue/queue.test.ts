/**
 * The queue on one Redis. On several servers that stand in for one another see `queue-failover.ts`, on Postgres
 * `worker/test/integration/queue/queue-on-postgres.test.ts`.
 */
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { describe, expect, test } from 'vitest';
import { testQueue } from '../support/queue-guarantees.ts';

describe('the queue on redis', () => {
  testQueue(() => Promise.resolve({ url: testRedisUrl(), close: () => Promise.resolve() }));
});

test('an unreachable Redis is an error at once, not a queue in memory', async () => {
  const producer = await openProducer({
    databaseUrl: 'postgres://127.0.0.1:1/none',
    redisUrl: 'redis://127.0.0.1:1',
    prefix: 'none',
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  });
  await expect(
    producer.addCommitBatches([{ shard: 0, envelope: { id: 'envelope-a', operations: [] } }]),
  ).rejects.toMatchObject({
    code: 'BROKER_UNAVAILABLE',
  });
  await producer.close();
});
