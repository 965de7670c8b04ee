/** Worker processes that count as dead, and the release of their leases. */
import type { Database } from '@sluice/database/connection/connection';
import { openSession as open, type Session } from '@sluice/database/connection/held-session';
import { claimLane, claimLanes, findLane } from '@sluice/database/delivery/lanes';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { findDueWork } from '@sluice/database/maintenance/due-work';
import {
  endEarlierSession,
  enter,
  forgetWorkers,
  leave,
  listDepartedWorkers,
  newProcessId,
  releaseLanesOf,
  tellBrokerWorkers,
} from '@sluice/database/maintenance/worker-processes';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';

const NOW_MS = 1_800_000_000_000;
const WAIT = { timeout: 30_000, interval: 20 };
let database: Database;
let url: string;

beforeEach(async () => {
  ({ database, url } = await createTestDatabase());
});

async function openSession(): Promise<Session> {
  const session = await open({ url, applicationName: 'test' }, () => undefined);
  onTestFinished(() => session.end().catch(() => undefined));
  return session;
}

const untilDeparted = (processIds: readonly number[]) =>
  vi.waitFor(
    async () =>
      expect((await listDepartedWorkers(database)).map(({ processId }) => processId)).toEqual(
        processIds,
      ),
    WAIT,
  );

test('a process is dead when its session has ended, and its workers of the broker are listed', async () => {
  const living = await openSession();
  const killed = await openSession();
  const ids = [await newProcessId(living), await newProcessId(living)] as const;
  expect(await enter(living, ids[0], ['a'])).toBe(true);
  expect(await enter(killed, ids[1], [])).toBe(true);
  await tellBrokerWorkers(killed, ids[1], ['b', 'c']);
  expect(await listDepartedWorkers(database)).toEqual([]);
  expect(await findDueWork(database, NOW_MS, 0)).toEqual(new Set());

  await killed.end();
  await untilDeparted([ids[1]]);
  expect(await listDepartedWorkers(database)).toEqual([
    { processId: ids[1], brokerWorkerIds: ['b', 'c'] },
  ]);
  expect(await findDueWork(database, NOW_MS, 0)).toEqual(new Set(['departed-workers']));

  await forgetWorkers(database, [ids[1]]);
  expect(await listDepartedWorkers(database)).toEqual([]);
});

test('one that leaves in good order is not dead', async () => {
  const session = await openSession();
  const processId = await newProcessId(session);
  await enter(session, processId, []);
  await leave(session, processId);
  await session.end();
  const { rows } = await sql`select from worker_processes`.execute(database);
  expect(rows).toEqual([]);
  expect(await listDepartedWorkers(database)).toEqual([]);
});

test('a process that lost its session without Postgres’ knowing ends it and is there again', async () => {
  const lost = await openSession();
  const processId = await newProcessId(lost);
  await enter(lost, processId, ['a']);
  const next = await openSession();
  expect(await enter(next, processId, ['a'])).toBe(false);
  await endEarlierSession(next, processId);
  await vi.waitFor(async () => expect(await enter(next, processId, ['a'])).toBe(true), WAIT);
  expect(await listDepartedWorkers(database)).toEqual([]);
});

test('the lanes that dead processes hold are released, and no lanes of a living one', async () => {
  await insertTestWorkspace(database, 1);
  const lanes: LaneKey[] = [];
  for (let count = 0; count < 3; count++) {
    const { webhookId } = await insertTestWebhook(database, 1);
    lanes.push({ environmentId: 1, webhookId });
  }
  await database.transaction().execute((transaction) =>
    appendDeliveries(transaction, [
      {
        environmentId: 1,
        eventId: 'e1',
        eventType: 'customer_subscribed',
        objectType: 'customer',
        metric: 'subscribed',
        occurredAtMs: NOW_MS,
        data: {},
      },
    ]),
  );
  const claims = lanes.map((lane, index) => ({
    lane,
    leaseMs: 60_000,
    holderProcessId: index === 2 ? 8 : 7,
  }));
  const claimed = await claimLanes(database, claims, NOW_MS, 0);
  expect(claimed.map((lane) => lane?.fencing)).toEqual([1, 1, 1]);

  // It was listed as dead, and has come back since.
  const session = await openSession();
  await enter(session, 7, []);
  expect(await releaseLanesOf(database, [7])).toBe(0);
  await forgetWorkers(database, [7]);
  await session.end();
  await untilDeparted([7]);

  expect(await releaseLanesOf(database, [7, 9])).toBe(2);
  const held = await Promise.all(
    lanes.map(async (lane) => (await findLane(database, lane))?.isHeld),
  );
  expect(held).toEqual([false, false, true]);
  // The next holder's fencing number keeps out later writes of the dead one to Postgres.
  expect(await claimLane(database, lanes[0] as LaneKey, 60_000, NOW_MS)).toMatchObject({
    fencing: 2,
  });
  expect(await releaseLanesOf(database, [7])).toBe(0);
});
