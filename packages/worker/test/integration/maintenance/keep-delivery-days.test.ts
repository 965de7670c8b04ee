/** Days of deliveries as a worker keeps them. Its own clock may be wrong: the database's is the real one. */
import type { Database } from '@sluice/database/connection/connection';
import { findDatabaseTime } from '@sluice/database/maintenance/delivery-retention';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { keepDeliveryDays } from '../../../src/maintenance/keep-delivery-days.ts';
import { createLaneWorld, DAY_MS } from '../support/lane-world.ts';

const KEPT_DAYS = 30;

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

const keepDays = async (aheadMs: number) => {
  const nowMs = (await findDatabaseTime(database)).getTime() + aheadMs;
  const logger = createLogger('test', 'silent');
  await keepDeliveryDays({ database, now: () => nowMs, logger }, KEPT_DAYS);
};

async function loggedCount(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from delivery_log`.execute(database);
  return rows[0]!.count;
}

test.each([
  ['40 days ahead', 40 * DAY_MS],
  ['right', 0],
  ['40 days behind', -40 * DAY_MS],
])('deliveries of today stay, by a clock that is %s', async (_, aheadMs) => {
  const world = await createLaneWorld(database);
  await world.log(3);
  await world.deliverAll();
  const inThreeDays = sql`'delivery_log' || to_char((now() at time zone 'UTC')::date + 3, '_YYYY_MM_DD')`;
  // It is not there yet if midnight has passed since the template was made.
  await sql`do $$begin execute 'drop table if exists ' || ${inThreeDays}; end$$`.execute(database);
  await keepDays(aheadMs);
  expect(await loggedCount()).toBe(3);
  // And the days that come are made.
  const { rows } = await sql<{ isMade: boolean }>`
    select to_regclass(${inThreeDays}) is not null as "isMade"`.execute(database);
  expect(rows).toEqual([{ isMade: true }]);
});

test('older deliveries are deleted', async () => {
  const world = await createLaneWorld(database);
  await world.log(3);
  await world.deliverAll();
  const old = KEPT_DAYS + 2;
  await sql`select make_delivery_partitions((now() at time zone 'UTC')::date - ${old}::int, 1)`.execute(
    database,
  );
  await sql`
    update delivery_log set day = (now() at time zone 'UTC')::date - ${old}::int where sequence < 3`.execute(
    database,
  );
  await keepDays(0);
  expect(await loggedCount()).toBe(1);
});
