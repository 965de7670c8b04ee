/**
 * Figures that wake operators: the age of the oldest commit batch, delivery, event of the payment provider and entry of
 * the outbox.
 */
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { findLaneBacklog } from '@sluice/database/delivery/lane-backlog';
import {
  claimProviderEvents,
  findOldestWaitingEvent,
  insertProviderEvent,
  settleProviderEvent,
} from '@sluice/database/billing/provider-events';
import {
  appendToOutbox,
  claimOutbox,
  findOldestUntold,
  finishOutbox,
  postponeOutbox,
  type OutboxEntry,
} from '@sluice/database/changes/outbox';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { registerBacklogMetrics } from '../../../src/process/backlog-metrics.ts';
import { createLaneWorld, status } from '../support/lane-world.ts';

const MINUTE_MS = 60_000;

describe.each(['postgres', 'redis'] as const)('with the queues in %s', (kind) => {
  let database: Database;
  let producer: Producer;

  beforeEach(async () => {
    const { url } = await createTestDatabase();
    database = createDatabase({
      url,
      poolMax: 4,
      applicationName: 'test',
      onError: () => undefined,
    });
    producer = await openProducer({
      databaseUrl: url,
      redisUrl: kind === 'redis' ? testRedisUrl() : undefined,
      prefix: uniquePrefix(),
      shardCount: 2,
      logger: createLogger('test', 'silent'),
    });
  });
  afterEach(async () => {
    await producer.close();
    await database.destroy();
  });

  /** As a scrape finds them, at `nowMs`; without the figures that every process has of itself. */
  const scrape = async (nowMs: number): Promise<Map<string, number>> => {
    const metrics = createMetrics('test');
    registerBacklogMetrics({
      metrics,
      producer,
      findLaneBacklog: () => findLaneBacklog(database, nowMs),
      findOldestProviderEvent: () => findOldestWaitingEvent(database),
      findOldestUntold: () => findOldestUntold(database, nowMs),
      now: () => nowMs,
    });
    const page = await metrics.render();
    return new Map(
      [...page.matchAll(/^(sluice_(?!event_loop|build_info)\w+)\{[^}]*\} (\S+)$/gm)].map(
        ([, name = '', value]) => [name, Number(value)],
      ),
    );
  };

  test('all backlog metrics of an idle fleet are zero', async () => {
    const found = await scrape(Date.now() + MINUTE_MS);
    expect(found.size).toBe(11);
    expect([...found.values()].every((value) => value === 0)).toBe(true);
  });

  test('the age is the age of the oldest commit batch of any shard', async () => {
    for (const shard of [1, 0, 1]) {
      await producer.addCommitBatches([
        { shard, envelope: { id: `01J${shard}${Math.random().toString(36)}`, operations: [] } },
      ]);
    }
    const found = await scrape(Date.now() + MINUTE_MS);
    expect(found.get('sluice_queued_envelopes')).toBe(3);
    expect(found.get('sluice_unprocessed_oldest_seconds')).toBeGreaterThanOrEqual(60);
    expect(found.get('sluice_unprocessed_oldest_seconds')).toBeLessThan(90);
  });

  test('deliveries that wait for the rate of their webhook are late only if they are not started in time', async () => {
    const slow = await createLaneWorld(database, { rateLimitPerSecond: 1 });
    slow.nowMs = Date.now();
    await slow.log(3);
    await slow.deliver();
    expect(slow.sent).toHaveLength(1);

    const inTime = await scrape(slow.nowMs + 500);
    expect(inTime.get('sluice_undelivered_deliveries')).toBe(2);
    expect(inTime.get('sluice_undelivered_oldest_seconds')).toBe(0);
    // Not by `slow.nowMs`: on a busy machine they were logged a while after it.
    const late = await scrape(Date.now() + MINUTE_MS);
    expect(late.get('sluice_undelivered_oldest_seconds')).toBeGreaterThanOrEqual(59);
  });

  test('deliveries that a failing endpoint blocks are counted apart from waiting ones', async () => {
    const waiting = await createLaneWorld(database);
    const failing = await createLaneWorld(database);
    const disabled = await createLaneWorld(database, { disabled: true });
    await waiting.log(2);
    await failing.log(5);
    await disabled.log(1);
    failing.behave = () => status(500);
    await failing.deliverAll();

    const found = await scrape(Date.now() + MINUTE_MS);
    expect(found.get('sluice_undelivered_deliveries')).toBe(2);
    expect(found.get('sluice_undelivered_oldest_seconds')).toBeGreaterThanOrEqual(60);
    expect(found.get('sluice_failing_lanes')).toBe(1);
    expect(found.get('sluice_held_back_deliveries')).toBe(5);
    expect(found.get('sluice_held_back_oldest_seconds')).toBeGreaterThanOrEqual(60);
  });

  test("a payment provider's event is as old as since it came, however often it was put off, until it is worked off", async () => {
    const nowMs = Date.now();
    const event = (eventId: string, ageMs: number) =>
      insertProviderEvent(
        database,
        { eventId, type: 'invoice.paid', objectId: 'in_1' },
        nowMs - ageMs,
      );
    await event('evt_old', 10 * MINUTE_MS);
    await event('evt_new', MINUTE_MS);
    // Put off: it is due again in an hour only.
    const retry = { firstMs: 60 * MINUTE_MS, mostMs: 60 * MINUTE_MS };
    expect(await claimProviderEvents(database, nowMs, retry, 1)).toMatchObject([
      { eventId: 'evt_old' },
    ]);

    const age = async () => (await scrape(nowMs)).get('sluice_vendor_event_oldest_seconds');
    expect(await age()).toBe(600);
    await settleProviderEvent(database, 'evt_old', nowMs);
    expect(await age()).toBe(60);
    await settleProviderEvent(database, 'evt_new', nowMs);
    expect(await age()).toBe(0);
  });

  test('the age of the oldest entry that was tried and not sent grows until it is sent', async () => {
    const nowMs = Date.now();
    const age = async () => (await scrape(nowMs)).get('sluice_outbox_oldest_seconds');
    const append = (topic: string, dedupeKey: string, ageMs: number) =>
      appendToOutbox(database, { topic, dedupeKey, payload: {} }, nowMs - ageMs);
    // Of a kind without a sender here.
    await append('other', 'a', 60 * MINUTE_MS);
    await append('signup.mail', 'a', 10 * MINUTE_MS);
    await append('signup.mail', 'b', MINUTE_MS);
    expect(await age()).toBe(0);
    const entries = await claimOutbox(database, ['signup.mail'], 2, nowMs);
    for (const entry of entries) await postponeOutbox(database, entry, nowMs);
    expect(await age()).toBe(600);
    const oldest = entries.find(({ dedupeKey }) => dedupeKey === 'a') as OutboxEntry;
    await finishOutbox(database, oldest.outboxId);
    expect(await age()).toBe(60);
    // Its sender does not exist any more.
    expect((await scrape(nowMs + 120 * MINUTE_MS)).get('sluice_outbox_oldest_seconds')).toBe(0);
  });
});
