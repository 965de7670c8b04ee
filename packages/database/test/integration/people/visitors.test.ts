/** Data of anonymous visitors: one row each, in the week of its last write, dropped with its week. */
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { EMPTY_VISITOR_PROFILE, weekOf } from '@sluice/domain/state/visitor-profile';
import type { ObjectRow, VisitorRow } from '@sluice/domain/state/loaded-state';
import type { NamedObjects } from '@sluice/domain/state/state-needs';
import type { Database } from '../../../src/connection/connection.ts';
import {
  dropOldVisitors,
  listNewestVisitorPlaces,
  listVisitors,
  listVisitorsOfObjects,
  makeVisitorPartitions,
  writeVisitors,
} from '../../../src/people/visitors.ts';
import { writeObjects } from '../../../src/people/objects.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { explain, rowsRead } from '../support/explain.ts';

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
  await writeVisitors(database, { ...NONE, inserted: [later], deleted: [first] });
  expect(await listVisitors(database, [later])).toEqual([later]);
  const again = { ...later, newestPlace: null };
  await writeVisitors(database, { ...NONE, updated: [again] });
  expect(await listVisitors(database, [later])).toEqual([again]);
  await writeVisitors(database, { ...NONE, deleted: [later] });
  expect(await listVisitors(database, [later])).toEqual([]);
});

test('a row is written and deleted in the partition of its week alone', async () => {
  const today = new Date();
  await makeVisitorPartitions(database, today, 4);
  const rows = ['p', 'q'].map((name) =>
    visitor(1, name, weekOf(today.getTime() + (name === 'q' ? 7 * DAY_MS : 0))),
  );
  await writeVisitors(database, { ...NONE, inserted: rows });
  const [row] = rows as [VisitorRow, VisitorRow];
  const plan = await explain(database, (recorded) =>
    writeVisitors(recorded, { ...NONE, deleted: [row] }),
  );
  const used = plan.filter((node) => node['Index Name'] && node['Actual Loops'] > 0);
  expect(used.map((node) => node['Relation Name'])).toEqual([
    `visitors_${row.week.replaceAll('-', '_')}`,
  ]);
  expect(await listVisitors(database, rows)).toEqual(rows.slice(1));
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

describe('visitors who will relate somebody to an object', () => {
  const OBJECT_NUMBER = 700;
  const object = (environmentId: number, objectNumber = OBJECT_NUMBER): ObjectRow => ({
    environmentId,
    objectNumber,
    objectTypeId: 1,
    objectId: 'acme',
    attributes: {},
    attributesAtMs: null,
    createdAtMs: 0,
    updatedAtMs: 0,
  });
  const related = (
    environmentId: number,
    anonymousId: string,
    objectNumber: number,
  ): VisitorRow => ({
    ...visitor(environmentId, anonymousId, '2026-12-03'),
    profile: {
      ...EMPTY_VISITOR_PROFILE,
      relationships: { [objectNumber]: { attributes: { 700: 'role' }, createdAtMs: 0, atMs: 0 } },
    },
  });
  const NAME = { environmentId: 5, objectTypeId: 1, objectId: 'acme' };

  beforeAll(async () => {
    await writeObjects(database, { ...NONE, inserted: [object(5), object(6, 701)] });
    const others = Array.from({ length: 5_000 }, (_, number) =>
      number % 2 === 0
        ? visitor(5, `plain ${number}`, '2026-12-03')
        : related(5, `other ${number}`, 1_000 + number),
    );
    const own = [related(5, 'a', OBJECT_NUMBER), related(5, 'b', OBJECT_NUMBER)];
    await writeVisitors(database, {
      ...NONE,
      inserted: [...others, ...own, related(6, 'c', OBJECT_NUMBER), related(6, 'd', 701)],
    });
    await sql`vacuum analyze visitors, objects`.execute(database);
  });

  test.each<[string, NamedObjects]>([
    ['type and id', { objectNames: [NAME], objects: [] }],
    ['number', { objectNames: [], objects: [{ environmentId: 5, objectNumber: OBJECT_NUMBER }] }],
  ])('are found by its %s, of its workspace alone, by the index', async (_, named) => {
    const found = await listVisitorsOfObjects(database, named, 10);
    expect(found.map(({ anonymousId }) => anonymousId).toSorted()).toEqual(['a', 'b']);
    const plan = await explain(database, (recorded) => listVisitorsOfObjects(recorded, named, 10));
    expect(plan.flatMap((node) => node['Index Name'] ?? []).join()).toContain('_expr_idx');
    expect(rowsRead(plan)).toBeLessThan(20);
    expect(await listVisitorsOfObjects(database, named, 1)).toHaveLength(1);
  });

  test('are not looked up if no object is deleted', async () => {
    const sent = await statementsSentBy(() =>
      listVisitorsOfObjects(database, { objectNames: [], objects: [] }, 10),
    );
    expect(sent).toEqual([]);
  });
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
