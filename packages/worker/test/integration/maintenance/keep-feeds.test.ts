/**
 * Feeds keep their events within their bounds.
 *
 * Each workspace counts by itself, and webhooks keep all of their events.
 */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { putFeed } from '@sluice/database/feeds/feed-changes';
import { findFeed, listFeedEvents } from '@sluice/database/feeds/feeds';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { keepFeeds } from '../../../src/maintenance/keep-feeds.ts';

const ORIGIN = { actor: { type: 'system' } } as const;
const LARGE = { ageSecondsMax: 7 * 86_400, sizeBytesMax: 1_000_000_000 };
const logger = createLogger('test', 'silent');

let database: Database;
let environmentId = 10;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  environmentId += 10;
  await insertTestWorkspace(database, environmentId);
  await makeFeed('a');
});

const makeFeed = (name: string, inside = environmentId) =>
  putFeed(
    database,
    inside,
    name,
    {
      events: ['customer_subscribed'],
      eventNames: null,
      attributeFilters: null,
      fullResolution: false,
      withContent: false,
      withImports: false,
      withLate: false,
      withPersonAttributes: false,
    },
    ORIGIN,
    0,
  );

/** Events of about 1 KB. */
async function log(howMany: number, inside = environmentId): Promise<void> {
  await appendDeliveries(
    database,
    Array.from({ length: howMany }, (_, index) => ({
      environmentId: inside,
      eventId: `e${index}`,
      eventType: 'customer_subscribed',
      objectType: 'customer',
      metric: 'subscribed',
      occurredAtMs: 0,
      data: { text: 'x'.repeat(1_000) },
    })),
  );
}

async function kept(name: string, inside = environmentId): Promise<number> {
  const feed = (await findFeed(database, inside, name))!;
  const events = await listFeedEvents(database, feed, feed.forgottenThrough, 1_000, 1e9);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from delivery_log
     where environment_id = ${inside} and webhook_id = ${feed.webhookId}`.execute(database);
  expect(rows).toEqual([{ count: events.length }]);
  return events.length;
}

test('all messages within the bounds stay, after any number of looks', async () => {
  await log(5);
  await keepFeeds({ database, logger }, LARGE);
  await log(5);
  await Promise.all([1, 2, 3].map(() => keepFeeds({ database, logger }, LARGE)));
  expect(await kept('a')).toBe(10);
});

test('beyond the size the oldest of all feeds of the workspace are forgotten, and no neighbour’s', async () => {
  const neighbourId = environmentId + 1;
  await insertTestWorkspace(database, neighbourId);
  await makeFeed('a', neighbourId);
  await log(5, neighbourId);
  await log(5);
  await keepFeeds({ database, logger }, LARGE);
  await makeFeed('b');
  await log(5);
  // Two feeds of about 5.5 KB each are the newest; the older 5.5 KB are beyond.
  await keepFeeds({ database, logger }, { ...LARGE, sizeBytesMax: 14_000 });
  expect([await kept('a'), await kept('b')]).toEqual([5, 5]);
  expect(await kept('a', neighbourId)).toBe(5);
});

test('older messages are forgotten, and webhooks keep their waiting deliveries', async () => {
  const { webhookId } = await insertTestWebhook(database, environmentId);
  await log(3);
  await keepFeeds({ database, logger }, { ...LARGE, ageSecondsMax: -1 });
  expect(await kept('a')).toBe(0);
  const { rows } = await sql`
    select last_sequence - cursor_sequence as waiting,
           (select count(*)::int from delivery_log l where l.webhook_id = ${webhookId}) as rows
      from lanes where webhook_id = ${webhookId}`.execute(database);
  expect(rows).toEqual([{ waiting: '3', rows: 3 }]);
  await log(2);
  await keepFeeds({ database, logger }, LARGE);
  expect(await kept('a')).toBe(2);
});
