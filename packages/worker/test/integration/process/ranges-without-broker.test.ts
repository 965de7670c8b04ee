/**
 * Ranges of webhooks while Redis is away and comes back.
 *
 * It comes back with its data or without.
 * Each delivery arrives once, and in the order of its webhook.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { WOKEN_TOGETHER_MIN } from '@sluice/domain/wake-ups/lane-ranges';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startReceiver } from '../../support/receiver.ts';
import { holdClaims } from '../support/hold-claims.ts';
import { createGate } from '../support/lane-world.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 20 };
const WEBHOOKS = WOKEN_TOGETHER_MIN;
const EACH_TIME = 2;

test.each([
  ['with its data', true],
  ['without its data', false],
])(
  'a Redis that ends and comes back %s costs no delivery of a range, and no order',
  { timeout: 240_000 },
  async (_, keepsData) => {
    const directory = await mkdtemp(join(tmpdir(), 'sluice-ranges-'));
    let redis = await startRedisServer({ directory });
    const { port } = redis;
    const comeBack = async (): Promise<void> => {
      if (!keepsData) await rm(directory, { recursive: true });
      redis = await startRedisServer({ directory, port });
    };
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    let mayAnswer = createGate();
    mayAnswer.open();
    const receiver = await startReceiver(({ socket }) => {
      void mayAnswer.opened.then(() =>
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
      );
    });
    for (let count = 0; count < WEBHOOKS; count++) {
      const endpoint = `http://127.0.0.1:${receiver.port}/hook-${count}`;
      await insertTestWebhook(database, 1, { endpoint, events: ['customer_unsubscribed'] });
    }
    const producer = await openProducer(
      {
        redisUrl: redis.url,
        prefix: 'sluice',
        shardCount: 1,
        databaseUrl: url,
        logger: createLogger('test', 'silent'),
      },
      500,
    );
    onTestFinished(async () => {
      await producer.close();
      await receiver.close();
      await redis.kill();
      await rm(directory, { recursive: true, force: true });
    });

    let loggedCount = 0;
    const log = async (): Promise<LoggedLane[]> => {
      const events = Array.from({ length: EACH_TIME }, () => ({
        environmentId: 1,
        eventId: `event-${++loggedCount}`,
        eventType: 'customer_unsubscribed' as const,
        objectType: 'customer' as const,
        metric: 'unsubscribed',
        occurredAtMs: Date.now(),
        personId: 7,
        data: { customer_id: '7' },
      }));
      const lanes = await database
        .transaction()
        .execute((transaction) => appendDeliveries(transaction, events));
      expect(lanes).toHaveLength(WEBHOOKS);
      return lanes;
    };
    const keptCount = async (): Promise<number> => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from delivery_attempts where outcome = 'delivered'`.execute(
        database,
      );
      return rows[0]?.count ?? 0;
    };
    const allAreKept = () =>
      vi.waitFor(async () => expect(await keptCount()).toBe(WEBHOOKS * loggedCount), WAIT);

    // Its wake-up waits in Redis, which ends before a worker takes it.
    await producer.wakeLanes(await log());
    await redis.kill();
    await comeBack();
    const worker = await startServiceUnderTest(MAIN, {
      DATABASE_URL: url,
      REDIS_URL: redis.url,
      SHARD_COUNT: '1',
      QUEUE_STALLED_AFTER_MS: '1000',
      WORKER_SWEEP_INTERVAL_MS: '100',
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      WEBHOOK_TIMEOUT_MS: '29000',
      DRAIN_TIMEOUT_MS: '60000',
      WORKER_PORT: '0',
    });
    await allAreKept();

    // Redis ends while a worker claims the range: the end of that job cannot be confirmed.
    mayAnswer = createGate();
    const claims = await holdClaims(database);
    await producer.wakeLanes(await log());
    await claims.areAsked();
    await redis.kill();
    const countBefore = receiver.requests.length;
    await claims.release();
    await vi.waitFor(() => expect(receiver.requests).toHaveLength(countBefore + WEBHOOKS), WAIT);

    // A drain needs no broker to send and keep. The wake-ups of later deliveries are lost.
    const countToKeep = WEBHOOKS * loggedCount;
    await expect(producer.wakeLanes(await log())).rejects.toBeInstanceOf(Error);
    mayAnswer.open();
    await vi.waitFor(async () => {
      expect(await keptCount()).toBeGreaterThanOrEqual(countToKeep);
    }, WAIT);
    await comeBack();
    await allAreKept();
    // And later wake-ups of the same range are no repetition of the one that was never confirmed.
    await vi.waitFor(async () => producer.wakeLanes(await log()), WAIT);
    await allAreKept();

    const inOrder = Array.from({ length: loggedCount }, (__, place) => `event-${place + 1}`);
    for (let count = 0; count < WEBHOOKS; count++) {
      const sent = receiver.requests
        .filter((request) => request.includes(`/hook-${count} `))
        .map((request) => /event-\d+/.exec(request)?.[0]);
      expect(sent).toEqual(inOrder);
    }
    expect(await worker.kill('SIGTERM')).toBe(0);
  },
);
