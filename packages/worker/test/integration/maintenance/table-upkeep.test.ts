import { insertImport } from '@sluice/database/imports/import-changes';
import type { ImportRow, ImportState } from '@sluice/database/imports/imports';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { forgetOldRecords } from '../../../src/maintenance/table-upkeep.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-01T01:00:00Z');

test('what is older than its retention goes, whatever its number; what is younger or not ended stays', async () => {
  const { database } = await createTestDatabase();
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    select n % 3, day::date, 'invalid', 'source', 'field-' || n, 1, now(), now(), 'x'
    from generate_series(1, 6000) n, unnest(array['2026-01-29', '2026-01-30']) day`.execute(
    database,
  );
  await insertTestWorkspace(database, 1);
  const made = async (state: ImportState, ageDays: number): Promise<number> => {
    const { importId } = (await insertImport(
      database,
      {
        environmentId: 1,
        name: state,
        description: null,
        identifier: 'id',
        dataToProcess: 'all',
        dataFileUrl: null,
        nowMs: NOW_MS - ageDays * DAY_MS,
      },
      BY_TEST,
    )) as ImportRow;
    await sql`update imports set state = ${state} where import_id = ${importId}`.execute(database);
    return importId;
  };
  for (let n = 0; n < 12; n++) await made('imported', 11);
  await made('failed', 11);
  await made('canceled', 11);
  const staying = [await made('importing', 11), await made('imported', 9)];

  await forgetOldRecords(
    database,
    { issuesKeptDays: 30, importsKeptDays: 10 },
    NOW_MS,
    new AbortController().signal,
  );
  const { rows: days } = await sql<{ day: string; count: string }>`
    select to_char(day, 'YYYY-MM-DD') as day, count(*) from ingestion_issues group by 1`.execute(
    database,
  );
  expect(days).toEqual([{ day: '2026-01-30', count: '6000' }]);
  const { rows: imports } = await sql<{ id: number }>`
    select import_id as id from imports order by 1`.execute(database);
  expect(imports.map(({ id }) => id)).toEqual(staying);
});
