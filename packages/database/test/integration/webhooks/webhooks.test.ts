import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { appendDeliveries } from '../../../src/delivery/deliveries.ts';
import { findLane } from '../../../src/delivery/lanes.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import {
  clearDeletedWebhook,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhook,
  type NewWebhook,
  type Webhook,
} from '../../../src/webhooks/webhooks.ts';

const settings: NewWebhook = {
  name: 'Hook',
  endpoint: 'https://receiver.test/hook',
  events: ['customer_subscribed', 'email_opened'],
  disabled: false,
  fullResolution: true,
  withContent: true,
};

let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
  for (const environmentId of [1, 2]) await insertTestWorkspace(database, environmentId);
});

const make = (environmentId = 1): Promise<Webhook> =>
  insertTestWebhook(database, environmentId, settings);

async function log(environmentId: number, count: number): Promise<void> {
  await appendDeliveries(
    database,
    Array.from({ length: count }, (_, index) => ({
      environmentId,
      eventId: `event-${index}`,
      eventType: 'email_opened',
      objectType: 'email',
      metric: 'opened',
      occurredAtMs: 0,
      data: {},
    })),
  );
}

describe('a webhook', () => {
  test("is found as it was made, with an empty lane and its workspace's key", async () => {
    const webhook = await make();
    expect(webhook).toMatchObject(settings);
    expect(await findWebhook(database, 1, webhook.webhookId)).toEqual(webhook);
    expect(await listWebhooks(database, 1)).toContainEqual(webhook);
    expect(
      await findLane(database, { environmentId: 1, webhookId: webhook.webhookId }),
    ).toMatchObject({ lastSequence: 0, state: 'healthy' });
    const { rows } =
      await sql`select signing_key from webhooks where webhook_id = ${webhook.webhookId}`.execute(
        database,
      );
    expect(rows).toEqual([{ signing_key: 'key of 1' }]);
  });

  test('is not made in a workspace that does not exist', async () => {
    expect(await insertWebhook(database, 999, settings)).toBeUndefined();
  });

  test('is visible, changeable and deletable only in its own workspace', async () => {
    const { webhookId } = await make();
    expect(await findWebhook(database, 2, webhookId)).toBeUndefined();
    expect(await updateWebhook(database, 2, webhookId, { name: 'Mine' }, 0)).toBeUndefined();
    expect(await deleteWebhook(database, 2, webhookId)).toBe(false);
    expect(await listWebhooks(database, 2)).toEqual([]);
    expect(await findWebhook(database, 1, webhookId)).toMatchObject({ name: 'Hook' });
  });

  test('with an id beyond all ids is not found', async () => {
    expect(await findWebhook(database, 1, Number.MAX_SAFE_INTEGER)).toBeUndefined();
    expect(await updateWebhook(database, 1, Number.MAX_SAFE_INTEGER, {}, 0)).toBeUndefined();
    expect(await deleteWebhook(database, 1, Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  test('changes only in the given fields', async () => {
    const { webhookId } = await make();
    const nowMs = Date.now() + 5_000;
    const changed = await updateWebhook(
      database,
      1,
      webhookId,
      { name: 'New', withContent: false, events: ['sms_sent'] },
      nowMs,
    );
    expect(changed).toMatchObject({
      mustWake: false,
      webhook: {
        ...settings,
        name: 'New',
        withContent: false,
        events: ['sms_sent'],
        updatedAt: new Date(nowMs),
      },
    });
    expect(await findWebhook(database, 1, webhookId)).toEqual(changed?.webhook);
  });
});

describe('a failing lane', () => {
  const probeAt = async (webhookId: number) =>
    (await findLane(database, { environmentId: 1, webhookId }))?.nextProbeAtMs;
  const nowMs = 1_800_000_000_000;
  const laterMs = nowMs + 3_600_000;

  async function makeFailing(): Promise<number> {
    const { webhookId } = await make();
    await log(1, 1);
    await sql`
      update lanes set state = 'failing', next_probe_at = ${new Date(laterMs)}
       where environment_id = 1 and webhook_id = ${webhookId}`.execute(database);
    return webhookId;
  }

  test.each<[string, Partial<NewWebhook>]>([
    ['its endpoint is changed', { endpoint: 'https://elsewhere.test/' }],
    ['it is disabled and enabled again', { disabled: false }],
  ])('probes at once when %s', async (_, changes) => {
    const webhookId = await makeFailing();
    if (changes.disabled === false)
      await updateWebhook(database, 1, webhookId, { disabled: true }, nowMs);
    expect(await probeAt(webhookId)).toBe(laterMs);
    expect(await updateWebhook(database, 1, webhookId, changes, nowMs)).toMatchObject({
      mustWake: true,
    });
    expect(await probeAt(webhookId)).toBe(nowMs);
  });

  test('waits on when something else is changed', async () => {
    const webhookId = await makeFailing();
    await updateWebhook(database, 1, webhookId, { ...settings, name: 'New' }, nowMs);
    expect(await probeAt(webhookId)).toBe(laterMs);
  });

  test('is held, and not to be woken, while its webhook is disabled', async () => {
    const webhookId = await makeFailing();
    expect(await updateWebhook(database, 1, webhookId, { disabled: true }, nowMs)).toMatchObject({
      mustWake: false,
    });
    expect(await findLane(database, { environmentId: 1, webhookId })).toMatchObject({
      isPaused: true,
      lastSequence: 1,
    });
  });
});

test('a deleted webhook is gone at once, and its rows are cleared in steps', async () => {
  const kept = await make(2);
  const { webhookId } = await make(2);
  await log(2, 25);
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, outcome)
    values (2, ${webhookId}, 1, 1, 5, now(), 'delivered'), (2, ${kept.webhookId}, 1, 1, 5, now(), 'delivered')`.execute(
    database,
  );

  expect(await deleteWebhook(database, 2, webhookId)).toBe(true);
  expect(await deleteWebhook(database, 2, webhookId)).toBe(false);
  expect(await findWebhook(database, 2, webhookId)).toBeUndefined();
  expect(await listWebhooks(database, 2)).toEqual([kept]);
  expect(await findLane(database, { environmentId: 2, webhookId })).toBeUndefined();

  let steps = 0;
  while (await clearDeletedWebhook(database, 10)) steps++;
  expect(steps).toBe(4);
  const { rows } = await sql`
    select (select count(*)::int from webhooks where environment_id = 2) as webhooks,
           (select count(*)::int from delivery_log where environment_id = 2) as log,
           (select count(*)::int from delivery_attempts where environment_id = 2) as attempts`.execute(
    database,
  );
  expect(rows).toEqual([{ webhooks: 1, log: 25, attempts: 1 }]);
});
