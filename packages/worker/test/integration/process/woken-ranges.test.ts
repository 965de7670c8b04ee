/**
 * Webhooks that are woken together, as a range. If the worker that has claimed them is killed, each delivery still
 * arrives soon, and in the order of its webhook.
 */
import { fileURLToPath } from 'node:url';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { WOKEN_TOGETHER_MIN } from '@sluice/domain/wake-ups/lane-ranges';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { startReceiver } from '../../support/receiver.ts';
import { holdClaims } from '../support/hold-claims.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 20 };
/** Of the leases and locks; queues that are taken up by their ends come far too late for this test. */
const HELD_MS = 120_000;
const WEBHOOKS = 2 * WOKEN_TOGETHER_MIN;
const DELIVERIES_EACH = 3;

test.each([
  ['redis', 'while their requests are in flight'],
  ['postgres', 'while their requests are in flight'],
  // Postgres commits the claim when the worker is dead already.
  ['redis', 'while it claims them'],
] as const)(
  'on %s: a range of webhooks whose worker is killed %s is delivered by the next, all of it and in order',
  { timeout: 300_000 },
  async (kind, step) => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    let isHanging = true;
    const receiver = await startReceiver(({ socket }) => {
      if (!isHanging) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const webhookIds: number[] = [];
    for (let count = 0; count < WEBHOOKS; count++) {
      const path = `/hook-${count}`;
      const { webhookId } = await insertTestWebhook(database, 1, {
        endpoint: `${receiver.url.replace(/\/$/, '')}${path}`,
        events: ['customer_unsubscribed'],
      });
      webhookIds.push(webhookId);
    }
    const broker = {
      ...(kind === 'redis' && { redisUrl: testRedisUrl() }),
      prefix: uniquePrefix(),
      shardCount: 1,
    };
    const settings = {
      DATABASE_URL: url,
      ...(broker.redisUrl !== undefined && { REDIS_URL: broker.redisUrl }),
      QUEUE_PREFIX: broker.prefix,
      SHARD_COUNT: '1',
      QUEUE_STALLED_AFTER_MS: String(HELD_MS),
      WEBHOOK_TIMEOUT_MS: String(HELD_MS / 3),
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      DRAIN_TIMEOUT_MS: String(HELD_MS),
      WORKER_PORT: '0',
    };
    const producer = await openProducer({
      ...broker,
      databaseUrl: url,
      logger: createLogger('test', 'silent'),
    });
    const first = await startServiceUnderTest(MAIN, settings);
    const lanes = await database.transaction().execute((transaction) =>
      appendDeliveries(
        transaction,
        Array.from({ length: DELIVERIES_EACH }, (_, place) => ({
          environmentId: 1,
          eventId: `event-${place + 1}`,
          eventType: 'customer_unsubscribed' as const,
          objectType: 'customer' as const,
          metric: 'unsubscribed',
          occurredAtMs: Date.now(),
          personId: 7,
          data: { customer_id: '7' },
        })),
      ),
    );
    expect(lanes).toHaveLength(WEBHOOKS);
    const claims = step === 'while it claims them' ? await holdClaims(database) : undefined;
    await producer.wakeLanes(lanes);
    const pathsOf = (requests: readonly string[]) =>
      new Set(requests.map((request) => /hook-\d+/.exec(request)?.[0]));
    if (claims) await claims.areAsked();
    else await vi.waitFor(() => expect(pathsOf(receiver.requests).size).toBe(WEBHOOKS), WAIT);
    await first.kill('SIGKILL');
    isHanging = false;
    const sentBefore = receiver.requests.length;
    await claims?.release();
    const second = await startServiceUnderTest(MAIN, settings);
    await vi.waitFor(async () => {
      const { rows } = await sql<{ delivered: number }>`
        select count(*)::int as delivered from delivery_attempts where outcome = 'delivered'`.execute(
        database,
      );
      expect(rows).toEqual([{ delivered: WEBHOOKS * DELIVERIES_EACH }]);
    }, WAIT);
    const inOrder = Array.from({ length: DELIVERIES_EACH }, (_, place) => `event-${place + 1}`);
    expect(pathsOf(receiver.requests).size).toBe(WEBHOOKS);
    for (const path of pathsOf(receiver.requests)) {
      const sent = receiver.requests
        .slice(sentBefore)
        .filter((request) => request.includes(`${path} `))
        .map((request) => /event-\d+/.exec(request)?.[0]);
      expect(sent).toEqual(inOrder);
    }
    await second.kill('SIGTERM');
    await producer.close();
    await receiver.close();
  },
);
