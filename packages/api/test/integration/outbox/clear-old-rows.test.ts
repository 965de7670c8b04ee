/** Old rows are cleared away. Rows that a caller still waits for stay, at any age. */
import { appendToOutbox, clearOutbox, finishOutbox } from '@sluice/database/changes/outbox';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  clearProviderEvents,
  insertProviderEvent,
  settleProviderEvent,
} from '@sluice/database/billing/provider-events';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { clearOldRows } from '../../../src/outbox/clear-old-rows.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-01T01:00:00Z');
const TOPICS = ['analytics.startup_application', 'signup.mail', 'vendor.customer'];

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

async function append(topic: string, name: string, ageMs: number): Promise<string> {
  const entry = { topic, dedupeKey: `${topic} ${name}`, payload: {} };
  await appendToOutbox(database, entry, NOW_MS - ageMs);
  const { rows } = await sql<{ id: string }>`
    select outbox_id as id from outbox where dedupe_key = ${entry.dedupeKey}`.execute(database);
  return rows[0]!.id;
}

async function takeEvent(name: string, ageMs: number): Promise<void> {
  const event = { eventId: name, type: 'invoice.paid', objectId: 'in_1' };
  await insertProviderEvent(database, event, NOW_MS - ageMs);
}

async function kept(table: 'outbox' | 'vendor_events', column: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select ${sql.ref(column)} as name from ${sql.table(table)}`.execute(database);
  return rows.map(({ name }) => name).toSorted();
}

test('a sent entry of any topic is removed after 90 days, and a waiting entry stays', async () => {
  for (const topic of TOPICS) {
    await finishOutbox(database, await append(topic, 'told', 90 * DAY_MS + 1));
    await finishOutbox(database, await append(topic, 'young', 90 * DAY_MS));
    await append(topic, 'waiting', 400 * DAY_MS);
  }
  await clearOldRows(database, NOW_MS);
  expect(await kept('outbox', 'dedupe_key')).toEqual(
    TOPICS.flatMap((topic) => [`${topic} waiting`, `${topic} young`]),
  );
});

test('an event of the payment provider is forgotten 90 days after it was worked off, and not before', async () => {
  await takeEvent('old', 200 * DAY_MS);
  await settleProviderEvent(database, 'old', NOW_MS - 90 * DAY_MS - 1);
  await takeEvent('worked off late', 200 * DAY_MS);
  await settleProviderEvent(database, 'worked off late', NOW_MS - 90 * DAY_MS);
  await takeEvent('waiting', 400 * DAY_MS);
  await clearOldRows(database, NOW_MS);
  expect(await kept('vendor_events', 'event_id')).toEqual(['waiting', 'worked off late']);
});

test('each is cleared a piece at a time, the oldest first, by several processes at once', async () => {
  for (let days = 95; days > 90; days--) {
    await finishOutbox(database, await append('vendor.customer', String(days), days * DAY_MS));
    await takeEvent(String(days), days * DAY_MS);
    await settleProviderEvent(database, String(days), NOW_MS - days * DAY_MS);
  }
  await clearOutbox(database, NOW_MS - 90 * DAY_MS, 2);
  await clearProviderEvents(database, NOW_MS - 90 * DAY_MS, 2);
  expect(await kept('vendor_events', 'event_id')).toEqual(['91', '92', '93']);
  expect(await kept('outbox', 'dedupe_key')).toEqual(
    ['91', '92', '93'].map((days) => `vendor.customer ${days}`),
  );
  await Promise.all(Array.from({ length: 4 }, () => clearOldRows(database, NOW_MS)));
  expect(await kept('vendor_events', 'event_id')).toEqual([]);
  expect(await kept('outbox', 'dedupe_key')).toEqual([]);
});
