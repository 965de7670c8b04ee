/**
 * A webhook that asks for it is disabled after days of failure.
 *
 * That happens once, with an entry and an alert; waiting deliveries are kept.
 */
import type { Database } from '@sluice/database/connection/connection';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { updateWebhook } from '@sluice/database/webhooks/webhooks';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { disableFailing } from '../../../src/maintenance/disable-failing.ts';
import { createLaneWorld, DAY_MS, OK, status, type LaneWorld } from '../support/lane-world.ts';

let database: Database;
let world: LaneWorld;
let watcherId: number;
let woken: number[];

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  woken = [];
  world = await createLaneWorld(database, { name: 'Orders', disableAfterDays: 3 });
  ({ webhookId: watcherId } = await insertTestWebhook(database, world.environmentId, {
    events: ['reporting_webhook_disabled'],
  }));
});

let idCount = 0;
const disable = () =>
  disableFailing({
    database,
    wakeLane: async ({ webhookId }) => void woken.push(webhookId),
    newId: () => `alert-${++idCount}`,
    now: () => world.nowMs,
    logger: createLogger('test', 'silent'),
  });

/** Fails from now on, and is looked at so many days later. */
async function failFor(days: number): Promise<void> {
  world.behave = () => status(503);
  await world.deliverAll();
  world.nowMs += days * DAY_MS;
}

async function isDisabled(): Promise<boolean | undefined> {
  const { rows } = await sql<{ disabled: boolean }>`
    select disabled from webhooks where webhook_id = ${world.webhookId}`.execute(database);
  return rows[0]?.disabled;
}

test('after its days, by one worker, with an entry of the system and an alert to the others', async () => {
  await world.log(3);
  const startedAtMs = world.nowMs;
  await failFor(2.9);
  expect(await disable()).toBe(0);
  world.nowMs = startedAtMs + 3.1 * DAY_MS;
  const disabled = await Promise.all([disable(), disable(), disable()]);
  expect(disabled.filter((count) => count === 1)).toHaveLength(1);
  expect(disabled.filter((count) => count === 0)).toHaveLength(2);
  expect(await isDisabled()).toBe(true);
  expect(await disable()).toBe(0);
  expect(woken).toEqual([watcherId]);
  const { rows: alerts } = await sql<{ body: string }>`
    select body from delivery_log where event_type = 'reporting_webhook_disabled'`.execute(
    database,
  );
  expect(alerts.map(({ body }) => JSON.parse(body))).toMatchObject([
    {
      metric: 'disabled',
      data: {
        reporting_webhook_id: world.webhookId,
        name: 'Orders',
        after_days: 3,
        failing_since: Math.floor(startedAtMs / 1_000),
      },
    },
  ]);
  const { rows: entries } = await sql`
    select actor_type as "actorType", changes from audit_logs
     where object_type = 'reporting_webhook' and object_id = ${String(world.webhookId)}
       and changes @> '[{"attribute": "disabled", "to": true}]'`.execute(database);
  expect(entries).toMatchObject([{ actorType: 'system' }]);
});

test('waiting deliveries are sent once the webhook is enabled again', async () => {
  await world.log(3);
  await failFor(4);
  await disable();
  world.behave = () => OK;
  await world.deliverAll();
  expect(await isDisabled()).toBe(true);
  const { environmentId, webhookId } = world;
  await updateWebhook(database, environmentId, webhookId, { disabled: false }, world.nowMs);
  await world.deliverAll();
  const { rows } = await sql<{ left: number }>`
    select (last_sequence - cursor_sequence)::int as left from lanes where webhook_id = ${webhookId}`.execute(
    database,
  );
  expect(rows).toEqual([{ left: 0 }]);
});

test.each([
  ['enabled again', { disabled: false }],
  ['enabled again with another address', { disabled: false, endpoint: 'https://elsewhere.test/' }],
])('one that is %s has its days anew', async (_, changes) => {
  await world.log(1);
  await failFor(4);
  expect(await disable()).toBe(1);
  world.nowMs += 10 * DAY_MS;
  const { environmentId, webhookId } = world;
  await updateWebhook(database, environmentId, webhookId, changes, world.nowMs);
  expect(await disable()).toBe(0);
  // A delivery that was tried for a week is given up now.
  await world.log(1);
  await failFor(2.9);
  expect(await disable()).toBe(0);
  world.nowMs += 0.2 * DAY_MS;
  expect(await disable()).toBe(1);
});

test('an endpoint that takes the place of a failing one has its days anew', async () => {
  await world.log(1);
  await failFor(2.9);
  const { environmentId, webhookId } = world;
  const changes = { endpoint: 'https://elsewhere.test/' };
  await updateWebhook(database, environmentId, webhookId, changes, world.nowMs);
  await failFor(0.2);
  expect(await disable()).toBe(0);
  world.nowMs += 3 * DAY_MS;
  expect(await disable()).toBe(1);
});

test('a webhook stays enabled after a success, and if it asks for more days or for no disabling', async () => {
  await world.log(1);
  await failFor(4);
  const { environmentId, webhookId } = world;
  const change = (disableAfterDays: number | null) =>
    updateWebhook(database, environmentId, webhookId, { disableAfterDays }, world.nowMs);
  await change(5);
  expect(await disable()).toBe(0);
  await change(null);
  expect(await disable()).toBe(0);
  await change(3);
  world.behave = () => OK;
  await world.deliverAll();
  expect(await disable()).toBe(0);
  expect(await isDisabled()).toBe(false);
});
