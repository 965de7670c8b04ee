/** The bound on the kept problems of a workspace's imports. */
import type { ImportKey } from '@sluice/database/imports/imports';
import { PROBLEMS_SIZE_BYTES_MAX } from '@sluice/domain/imports/problem-limits';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { ImportsWorld } from '../support/imports-world.ts';

const MEBIBYTE = 1_048_576;
const ROW_COUNT = 10;
const FILE = `_svc_name,_svc_customer_id\n${'bought,nobody\n'.repeat(ROW_COUNT)}`;

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

/** Problems of rows that the file does not have. */
async function fill({ environmentId, importId }: ImportKey, sizeBytes: number): Promise<void> {
  await sql`
    insert into import_problems
      (environment_id, import_id, severity, row_number, position, column_name, code, message, record)
    select ${environmentId}::int, ${importId}::int, 'error', 1000 + n, 0, '', 'invalid',
           repeat('x', ${MEBIBYTE}::int), '[]'
      from generate_series(1, ${sizeBytes / MEBIBYTE}::int) n`.execute(world.database);
}

async function keptCount({ environmentId, importId }: ImportKey): Promise<number | undefined> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from import_problems
     where environment_id = ${environmentId} and import_id = ${importId} and row_number <= 1000`.execute(
    world.database,
  );
  return rows[0]?.count;
}

test('in a workspace whose imports have taken the bound, wrong rows are counted and not kept', async () => {
  await fill(await world.insert(), PROBLEMS_SIZE_BYTES_MAX);
  const key = await world.upload(FILE);
  await world.run();
  const counts = { rowsRead: ROW_COUNT, rowsFailed: ROW_COUNT };
  expect(await world.shown(key)).toMatchObject({ state: 'imported', ...counts });
  expect(await keptCount(key)).toBe(0);
});

test('each workspace has its own space for the problems of imports', async () => {
  await fill(await world.insert({ environmentId: 2 }), PROBLEMS_SIZE_BYTES_MAX);
  const key = await world.upload(FILE);
  await world.run();
  expect(await keptCount(key)).toBe(ROW_COUNT);
});

test.each([
  { part: 'all', sizeBytes: PROBLEMS_SIZE_BYTES_MAX / 4, kept: 0 },
  { part: 'half', sizeBytes: PROBLEMS_SIZE_BYTES_MAX / 8, kept: ROW_COUNT },
])(
  'a worker counts problems that an earlier worker of the import has kept: $part of its quarter',
  async ({ sizeBytes, kept }) => {
    const key = await world.upload(FILE);
    await fill(key, sizeBytes);
    await world.run();
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsFailed: ROW_COUNT });
    expect(await keptCount(key)).toBe(kept);
  },
);
