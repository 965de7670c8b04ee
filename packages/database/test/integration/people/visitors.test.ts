/** Data of anonymous visitors: one row each, in the week of its last write, dropped with its week. */
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { EMPTY_VISITOR_PROFILE } from '@sluice/domain/state/visitor-profile';
import type { VisitorRow } from '@sluice/domain/state/loaded-state';
import type { Database } from '../../../src/connection/connection.ts';
import {
  dropOldVisitors,
  listNewestVisitorPlaces,
  listVisitors,
  makeVisitorPartitions,
  writeVisitors,
} from '../../../src/people/visitors.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

const DAY_MS = 86_400_000;
const NONE = { inserted: [], updated: [], deleted: [] };

const visitor = (environmentId: number, anonymousId: string, week: string): VisitorRow => ({
  environmentId,
  anonymousId,
  week,
  newestPlace: `place of ${week}`,
  profile: {
    ...EMPTY_VISITOR_PROFILE,
    attributes: { week: { value: week, place: `place of ${week}`, atMs: 0 } },
  },
});

async function partitions(): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'visitors'::regclass order by 1`.execute(database);
  return rows.map(({ name }) => name);
}

test('a visitor has one row, which moves to the week of its last write', async () => {
  const first = visitor(1, 'moves', '2026-11-19');
  await writeVisitors(database, { ...NONE, inserted: [first] });
  const later = visitor(1, 'moves', '2026-11-26');
  await writeVisitors(database, { ...NONE, updated: [later] });
  expect(await listVisitors(database, [later])).toEqual([later]);
  const again = { ...later, newestPlace: null };
  await writeVisitors(database, { ...NONE, updated: [again] });
  expect(await listVisitors(database, [later])).toEqual([again]);
  await writeVisitors(database, { ...NONE, deleted: [later] });
  expect(await listVisitors(database, [later])).toEqual([]);
});

test('the newest visitor place is found by workspace, and only for workspaces with visitors', async () => {
  await writeVisitors(database, {
    ...NONE,
    inserted: [
      visitor(2, 'a', '2026-11-19'),
      visitor(2, 'b', '2026-11-26'),
      visitor(3, 'c', '2027-01-07'),
    ],
  });
  expect(await listNewestVisitorPlaces(database, [2, 4])).toEqual([
    { environmentId: 2, place: 'place of 2026-11-26' },
  ]);
});

test('a week that ended more than a month ago is dropped whole, and no other', async () => {
  const today = new Date('2031-03-14T12:00:00Z');
  const before = await partitions();
  // Weeks are counted from a Thursday.
  const weeks = ['2031-01-30', '2031-02-06', '2031-02-13', '2031-03-13'];
  for (const week of weeks) await makeVisitorPartitions(database, new Date(week), 1);
  await makeVisitorPartitions(database, today, 1);
  const rows = weeks.map((week) => visitor(5, week, week));
  await writeVisitors(database, { ...NONE, inserted: rows });
  const made = (await partitions()).filter((name) => !before.includes(name));
  expect(made).toEqual(weeks.map((week) => `visitors_${week.replaceAll('-', '_')}`));
  const dropped = await dropOldVisitors(database, today, 30 * DAY_MS);
  expect(dropped).toContain('visitors_2031_01_30');
  expect(dropped).not.toContain('visitors_2031_02_06');
  expect((await listVisitors(database, rows)).map(({ week }) => week).toSorted()).toEqual(
    weeks.slice(1),
  );
});
