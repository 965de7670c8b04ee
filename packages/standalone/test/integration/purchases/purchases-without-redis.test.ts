/**
 * Purchases with a queue that loses or repeats its jobs.
 *
 * It forgets everything, is away, or delivers everything many times over.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { INVOICED, startPurchaseServices, type PurchaseServices } from './purchase-services.ts';

const TEST_TIMEOUT_MS = 180_000;

let directory: string;
let redis: RedisServer;
let services: PurchaseServices;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
  redis = await startRedisServer({ directory: join(directory, 'redis') });
  services = await startPurchaseServices(redis.url);
  const card = { payment_method_id: 'pm_card_visa' };
  await services.call(INVOICED, '/payment_method/default', card);
}, TEST_TIMEOUT_MS);
afterAll(async () => {
  await services.close();
  await redis.stop();
  await rm(directory, { recursive: true, force: true });
});

const buy = () =>
  services.call(INVOICED, '/inbox_previews/invoiced_purchase', { pack: 'pack_100' });

/** It ends as it should, with the one charge for it. */
async function expectBoughtOnce(runId: string): Promise<void> {
  expect(await services.untilEnded(INVOICED, runId)).toMatchObject({ status: 'success' });
  expect(services.paid().filter((charge) => charge.runId === runId)).toHaveLength(1);
}

test(
  'I17: a Redis that is flushed in the middle of a purchase costs time only',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const { faults } = services.simulator;
    const reached = faults.meet({ kind: 'slow', method: 'POST', path: '/finalize', delayMs: 500 });
    // And the wake-up that follows a payment provider who is busy is forgotten too.
    faults.add({ kind: 'conflict', method: 'POST', path: '/pay', count: 1 });
    const { body } = await buy();
    await reached;
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
    await expectBoughtOnce(body.run_id);
  },
);

test(
  'I17: duplicate wake-ups of a purchase buy it once',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const producer = await openProducer({
      databaseUrl: services.settings['DATABASE_URL'] ?? '',
      redisUrl: redis.url,
      prefix: services.settings['QUEUE_PREFIX'] ?? '',
      shardCount: 0,
      logger: createLogger('test', 'silent'),
    });
    try {
      const { body } = await buy();
      const key = { accountId: INVOICED.accountId, runId: body.run_id };
      for (let round = 0; round < 10; round++)
        await Promise.all(Array.from({ length: 20 }, () => producer.wakePurchaseWorkflow(key)));
      await expectBoughtOnce(body.run_id);
      for (let n = 0; n < 20; n++) await producer.wakePurchaseWorkflow(key);
      await expectBoughtOnce(body.run_id);
    } finally {
      await producer.close();
    }
  },
);

test(
  'I17: a purchase that is started while Redis is away is taken, and ends once it is back',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const { port } = redis;
    await redis.kill();
    const { status, body } = await buy();
    expect(status).toBe(200);
    expect((await buy()).body.run_id).toBe(body.run_id);
    redis = await startRedisServer({ directory: join(directory, 'redis'), port });
    await expectBoughtOnce(body.run_id);
  },
);
