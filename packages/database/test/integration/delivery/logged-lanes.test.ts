/**
 * Lanes that are handed over with their log. A lease is taken only if no other may send, and never twice. The
 * deliveries are equal to the logged ones.
 */
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { appendDeliveries } from '../../../src/delivery/deliveries.ts';
import { recordLaneMerges } from '../../../src/delivery/lane-merges.ts';
import { recordProgress } from '../../../src/delivery/lane-progress.ts';
import { claimLane, findLane } from '../../../src/delivery/lanes.ts';
import { HANDED_COUNT_MAX, type LoggedLane } from '../../../src/delivery/logged-lanes.ts';
import { listDeliveriesAfter } from '../../../src/delivery/logged-deliveries.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase, untilLockWaiters } from '../../../src/testing/testing.ts';
import { updateWebhook } from '../../../src/webhooks/webhooks.ts';

const NOW_MS = 1_800_000_000_000;
const TAKING = { leaseMs: 15_000, holderProcessId: 7, nowMs: NOW_MS, countMax: 8 };

let database: Database;
let environmentId = 0;
let webhookId: number;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  await insertTestWorkspace(database, ++environmentId);
  ({ webhookId } = await insertTestWebhook(database, environmentId));
});

let eventCount = 0;
const reportOf = (changes: Partial<ReportingEvent> = {}): ReportingEvent => ({
  environmentId,
  eventId: `event-${++eventCount}`,
  eventType: 'customer_subscribed',
  objectType: 'customer',
  metric: 'subscribed',
  occurredAtMs: NOW_MS,
  data: { customer_id: '1' },
  ...changes,
});
const logging = (count: number, changes: Partial<typeof TAKING> = {}): Promise<LoggedLane[]> =>
  appendDeliveries(
    database,
    Array.from({ length: count }, () => reportOf()),
    { ...TAKING, ...changes },
  );
const setLane = (change: string) =>
  sql`update lanes set ${sql.raw(change)} where environment_id = ${environmentId}`.execute(
    database,
  );

test('an idle lane without a holder is claimed together with its log', async () => {
  const [lane] = await logging(2);
  const lease = await findLane(database, { environmentId, webhookId });
  expect(lane?.claimed).toMatchObject({
    fencing: 1,
    lastSequence: 2,
    cursor: 0,
    endpoint: 'http://receiver.test/',
    accountId: expect.any(Number),
  });
  expect(lease?.isHeld).toBe(true);
  const { rows } = await sql<{ holder: number }>`
    select holder_process_id as holder from lanes where environment_id = ${environmentId}`.execute(
    database,
  );
  expect(rows).toEqual([{ holder: TAKING.holderProcessId }]);
  expect(await claimLane(database, { environmentId, webhookId }, 15_000, NOW_MS)).toBeUndefined();
});

test('the deliveries that are handed over equal the deliveries of the log', async () => {
  await updateWebhook(database, environmentId, webhookId, { withContent: true }, NOW_MS);
  const events = [
    reportOf({ personId: 5, content: { content: 'Hello "\ud800' } }),
    reportOf({ eventType: 'customer_unsubscribed', metric: 'unsubscribed' }),
    reportOf({ data: { identifiers: { id: '1', cio_id: 'a1' } } }),
    reportOf(),
  ];
  const [lane] = await appendDeliveries(database, events, TAKING);
  const [logged] = await listDeliveriesAfter(database, [
    {
      lane: { environmentId, webhookId },
      after: 0,
      attemptedThrough: 0,
      limit: 10,
      readFromDay: null,
    },
  ]);
  expect(logged).toHaveLength(lane?.deliveries?.length ?? 0);
  expect(lane?.deliveries).toEqual(logged);
  const [more] = await logging(1);
  expect(more?.deliveries?.map(({ sequence }) => sequence)).toEqual([(logged?.length ?? 0) + 1]);
});

test.each([
  ['is held', `lease_until = now() + interval '1 hour'`],
  ['is disabled', 'is_paused = true'],
  ['has waiting deliveries', 'last_sequence = 3'],
  [
    'may not send yet because of its rate',
    `next_start_at = timestamptz '${new Date(NOW_MS + 500).toISOString()}'`,
  ],
  ['fails', `state = 'failing', next_probe_at = now()`],
])('a lane that %s is not taken', async (_, change) => {
  await setLane(change);
  const lanes = await logging(1);
  expect(lanes.map(({ claimed }) => claimed)).toEqual(
    change.includes('failing') ? [] : [undefined],
  );
  expect(await findLane(database, { environmentId, webhookId })).toMatchObject({ fencing: 0 });
});

test('a lane of a closed account is not taken', async () => {
  await sql`update accounts set status = 'closed' from environments e
             where e.account_id = accounts.account_id and e.environment_id = ${environmentId}`.execute(
    database,
  );
  expect((await logging(1))[0]?.claimed).toBeUndefined();
  await sql`update accounts set status = 'active'`.execute(database);
  await setLane('cursor_sequence = last_sequence');
  expect((await logging(1))[0]?.claimed).toBeDefined();
});

test('an append takes leases only on request, and only up to the requested number', async () => {
  expect(await appendDeliveries(database, [reportOf()])).toEqual([
    { environmentId, webhookId, lastSequence: 1 },
  ]);
  await setLane('cursor_sequence = last_sequence');
  await insertTestWebhook(database, environmentId);
  await insertTestWebhook(database, environmentId);
  const taken = (await logging(1, { countMax: 2 })).filter(({ claimed }) => claimed);
  expect(taken).toHaveLength(2);
});

test('many deliveries, and deliveries of merged people, are left to be read from the log', async () => {
  const [many] = await logging(HANDED_COUNT_MAX + 1);
  expect(many?.claimed).toBeDefined();
  expect(many?.deliveries).toBeUndefined();
  await recordLaneMerges(database, [{ environmentId, fromPersonId: 1, toPersonId: 2 }]);
  const [merged] = await logging(1);
  expect(merged?.lastSequence).toBe(HANDED_COUNT_MAX + 2);
  expect(merged?.deliveries).toBeUndefined();
});

test('of transactions that log at the same time one takes the lease, and the next only once it is given back', async () => {
  let release = (): void => {};
  const isFirstDone = new Promise<void>((resolve) => (release = resolve));
  let began = (): void => {};
  const hasLogged = new Promise<void>((resolve) => (began = resolve));
  const first = database.transaction().execute(async (transaction) => {
    const lanes = await appendDeliveries(transaction, [reportOf()], TAKING);
    began();
    await isFirstDone;
    return lanes;
  });
  await hasLogged;
  // Waits for the row, and sees it as the first leaves it.
  const others = Array.from({ length: 2 }, () => logging(1));
  await untilLockWaiters(database, 2);
  release();
  const [[taken], ...rest] = await Promise.all([first, ...others]);
  expect(taken?.claimed?.fencing).toBe(1);
  expect(rest.flat().map(({ claimed }) => claimed)).toEqual([undefined, undefined]);

  const snapshot = {
    state: 'healthy',
    cursor: 3,
    attemptedThrough: 3,
    nextProbeAtMs: null,
    concurrencyLimit: 1,
  } as const;
  const progress = {
    snapshot,
    attempts: [],
    endpointVersion: taken?.claimed?.endpointVersion ?? 0,
    isLast: true,
  };
  await recordProgress(database, { environmentId, webhookId }, 1, progress, 15_000, NOW_MS);
  expect((await logging(1))[0]?.claimed?.fencing).toBe(2);
});

test('an undone transaction takes no lease', async () => {
  await database
    .transaction()
    .execute(async (transaction) => {
      await appendDeliveries(transaction, [reportOf()], TAKING);
      throw new Error('undone');
    })
    .catch(() => undefined);
  expect(await findLane(database, { environmentId, webhookId })).toMatchObject({
    fencing: 0,
    isHeld: false,
  });
});

test('an event that a filter leaves out is logged for the other webhooks alone, few or many at a time', async () => {
  const filtered = await insertTestWebhook(database, environmentId, {
    attributeFilters: [{ field: 'data.plan', operator: 'eq', values: ['pro'] }],
  });
  for (const count of [1, 65]) {
    const lanes = await logging(count);
    expect(lanes.map((lane) => lane.webhookId)).toEqual([webhookId]);
    await setLane('cursor_sequence = last_sequence');
  }
  const { lastSequence, isHeld } =
    (await findLane(database, { environmentId, webhookId: filtered.webhookId })) ?? {};
  expect({ lastSequence, isHeld }).toEqual({ lastSequence: 0, isHeld: false });
});
