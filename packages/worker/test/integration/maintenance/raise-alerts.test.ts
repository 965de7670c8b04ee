/** Alerts of a workspace about a failing webhook: once an episode, by its other webhooks, without a loop. */
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { appendTest, skipHead } from '@sluice/database/replays/lane-actions';
import { listUntoldEnvironments } from '@sluice/database/delivery/lane-alerts';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { ALERT_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { raiseAlerts } from '../../../src/maintenance/raise-alerts.ts';
import {
  createLaneWorld,
  DAY_MS,
  HOUR_MS,
  OK,
  POLICY,
  status,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;
/** Fails, and chose alerts too. */
let world: LaneWorld;
let watcherId: number;
let woken: number[];

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  woken = [];
  world = await createLaneWorld(database, {
    name: 'Orders',
    events: ['customer_subscribed', ...ALERT_EVENT_TYPES],
  });
  ({ webhookId: watcherId } = await insertTestWebhook(database, world.environmentId, {
    name: 'Watcher',
    endpoint: 'http://watcher.test/',
    events: ALERT_EVENT_TYPES,
  }));
});

let idCount = 0;
const raise = () =>
  raiseAlerts({
    database,
    wakeLane: async ({ webhookId }) => void woken.push(webhookId),
    alertAfterMs: HOUR_MS,
    newId: () => `alert-${++idCount}`,
    now: () => world.nowMs,
    logger: createLogger('test', 'silent'),
  });

/** Bodies, oldest first. */
async function alertsTo(webhookId: number): Promise<Record<string, unknown>[]> {
  const { rows } = await sql<{ body: string }>`
    select body from delivery_log where webhook_id = ${webhookId} and event_type = any (${[...ALERT_EVENT_TYPES]})
     order by sequence`.execute(database);
  return rows.map((row) => JSON.parse(row.body) as Record<string, unknown>);
}

/** Gives up after two hours, so that few probes are enough. */
const IMPATIENT = { policy: { ...POLICY, giveUpAfterMs: 2 * HOUR_MS } };

/** Probes whenever one is due, until a time. */
async function failUntil(atMs: number, changes = {}): Promise<void> {
  world.behave = () => status(503);
  for (;;) {
    const outcome = await world.deliverAll(changes);
    if (outcome.outcome !== 'waiting' || outcome.untilMs > atMs) break;
    world.nowMs = outcome.untilMs;
  }
  world.nowMs = atMs;
}

test('a webhook that has failed for an hour is reported once, to the other webhooks and not to itself', async () => {
  await world.log(3);
  const startedAtMs = world.nowMs;
  await failUntil(startedAtMs + HOUR_MS - 1_000);
  expect(await raise()).toBe(0);
  await failUntil(startedAtMs + HOUR_MS + 10_000);
  expect(await Promise.all([raise(), raise(), raise()])).toEqual(expect.arrayContaining([1, 0, 0]));
  expect(woken).toEqual([watcherId]);
  expect(await alertsTo(watcherId)).toEqual([
    {
      event_id: expect.stringMatching(/^alert-/),
      object_type: 'reporting_webhook',
      metric: 'failing',
      timestamp: Math.floor(world.nowMs / 1000),
      data: {
        reporting_webhook_id: world.webhookId,
        name: 'Orders',
        failing_since: Math.floor(startedAtMs / 1000),
        next_probe_at: expect.any(Number),
        unfinished_count: 3,
      },
    },
  ]);
  expect(await alertsTo(world.webhookId)).toEqual([]);

  await failUntil(startedAtMs + DAY_MS);
  expect(await raise()).toBe(0);
  expect(await alertsTo(watcherId)).toHaveLength(1);
});

test('a workspace whose alert fails does not keep the others waiting, and is alerted later', async () => {
  const other = await createLaneWorld(database, { events: ['customer_subscribed'] });
  for (const each of [world, other]) {
    each.behave = () => status(503);
    await each.log(1);
    await each.deliverAll();
  }
  world.nowMs += 2 * HOUR_MS;
  const [first] = await listUntoldEnvironments(database, world.nowMs, 1);
  await sql`alter table lanes add constraint broken
    check (environment_id <> ${sql.lit(first)} or not is_failure_told)`.execute(database);
  expect(await raise()).toBe(1);
  await sql`alter table lanes drop constraint broken`.execute(database);
  expect(await raise()).toBe(1);
});

test('an episode ends with the first success: the next one is reported again, after its own hour', async () => {
  await world.log(1);
  await failUntil(world.nowMs + 2 * HOUR_MS);
  expect(await raise()).toBe(1);
  world.behave = () => OK;
  world.nowMs += HOUR_MS;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(await raise()).toBe(0);

  await world.log(1);
  await failUntil(world.nowMs + HOUR_MS / 2);
  expect(await raise()).toBe(0);
  await failUntil(world.nowMs + HOUR_MS);
  expect(await raise()).toBe(1);
  expect(await alertsTo(watcherId)).toHaveLength(2);
});

test('a webhook that recovers within the hour is not reported', async () => {
  await world.log(1);
  await failUntil(world.nowMs + HOUR_MS / 2);
  world.behave = () => OK;
  world.nowMs += HOUR_MS;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  world.nowMs += DAY_MS;
  expect(await raise()).toBe(0);
});

test('the first delivery that is given up in an episode is reported, with its status', async () => {
  await world.log(2);
  const startedAtMs = world.nowMs;
  await failUntil(startedAtMs + HOUR_MS + 10_000, IMPATIENT);
  await raise();
  await failUntil(startedAtMs + 6 * HOUR_MS, IMPATIENT);
  expect(await world.lane()).toMatchObject({ cursor: 2 });
  expect(await raise()).toBe(1);
  expect(await raise()).toBe(0);
  const [, abandoned, ...others] = await alertsTo(watcherId);
  expect(others).toEqual([]);
  expect(abandoned).toMatchObject({
    object_type: 'reporting_webhook',
    metric: 'abandoned',
    data: {
      reporting_webhook_id: world.webhookId,
      delivery: { sequence: 1, event_id: 'e1', event_type: 'customer_subscribed', status: 503 },
    },
  });
  // Also if it recovers before a worker looked, and then gives up again.
  world.behave = () => OK;
  await world.log(1);
  await world.deliverAll();
  await world.log(1);
  await failUntil(world.nowMs + 4 * HOUR_MS, IMPATIENT);
  world.behave = () => OK;
  await world.log(1);
  await world.deliverAll();
  await raise();
  expect((await alertsTo(watcherId)).map((alert) => alert['metric'])).toEqual([
    'failing',
    'abandoned',
    'abandoned',
  ]);
});

test('a test event that fails is not reported', async () => {
  world.behave = () => status(500);
  const event = {
    eventId: 't',
    eventType: 'email_sent',
    occurredAtMs: 0,
    body: '{"event_id":"t"}',
  };
  await appendTest(database, world.key, event, BY_TEST, world.nowMs);
  await world.deliverAll();
  expect((await listDeliveries(database, world.key, 1))[0]).toMatchObject({ state: 'abandoned' });
  world.nowMs += DAY_MS;
  expect(await raise()).toBe(0);
});

// Two dead webhooks that watch each other would else report each other for ever.
test('an alert that is given up raises no alert', async () => {
  await world.log(1);
  await sql`
    update delivery_log set event_type = 'reporting_webhook_failing' where webhook_id = ${world.webhookId}`.execute(
    database,
  );
  await failUntil(world.nowMs + HOUR_MS + 10_000, IMPATIENT);
  await raise();
  await failUntil(world.nowMs + 3 * HOUR_MS, IMPATIENT);
  expect(await world.lane()).toMatchObject({ cursor: 1 });
  await raise();
  expect((await alertsTo(watcherId)).map((alert) => alert['metric'])).toEqual(['failing']);
});

test('a disabled webhook is not reported as failing, and is reported once it is enabled and still fails', async () => {
  await world.log(1);
  await failUntil(world.nowMs + 10_000);
  const change = (disabled: boolean) => world.change({ disabled });
  await change(true);
  world.nowMs += DAY_MS;
  expect(await raise()).toBe(0);
  await change(false);
  await failUntil(world.nowMs + 10_000);
  expect(await raise()).toBe(1);
});

test('a webhook whose head was skipped, and which has no delivery left, is not reported as failing', async () => {
  await world.log(1);
  await failUntil(world.nowMs + 10_000);
  const skip = { sequence: 1, note: 'by hand' };
  expect(await skipHead(database, world.key, skip, BY_TEST, world.nowMs)).toBe('skipped');
  world.nowMs += DAY_MS;
  expect(await raise()).toBe(0);
  expect(await alertsTo(watcherId)).toEqual([]);
});

test('deliveries that succeeded beside the head are not reported as unfinished', async () => {
  world.behave = (_, eventId) => (eventId === 'e2' ? status(500) : OK);
  await world.log(8);
  expect(await world.deliverAll()).toMatchObject({ outcome: 'waiting' });
  expect(world.sent.length).toBeGreaterThan(2);
  world.nowMs += HOUR_MS;
  const unfinished = (await listDeliveries(database, world.key, 10)).filter(
    ({ state }) => state === 'pending' || state === 'retrying',
  );
  expect(await raise()).toBe(1);
  const [alert] = await alertsTo(watcherId);
  expect(alert?.['data']).toMatchObject({ unfinished_count: unfinished.length });
});
