import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { insertImport } from '@sluice/database/imports/import-changes';
import type { ImportRow, ImportState } from '@sluice/database/imports/imports';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { forgetOldRecords } from '../../../src/maintenance/table-upkeep.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-01T01:00:00Z');

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** An import of workspace 1 that was made so long before. */
async function makeImport(
  database: Database,
  state: ImportState,
  ageDays: number,
  nowMs: number,
): Promise<number> {
  const { importId } = (await insertImport(
    database,
    {
      environmentId: 1,
      name: state,
      description: null,
      identifier: 'id',
      dataToProcess: 'all',
      dataFileUrl: null,
      nowMs: nowMs - ageDays * DAY_MS,
    },
    BY_TEST,
  )) as ImportRow;
  await sql`update imports set state = ${state} where import_id = ${importId}`.execute(database);
  return importId;
}

const importIds = async (database: Database): Promise<number[]> => {
  const { rows } = await sql<{ id: number }>`
    select import_id as id from imports order by 1`.execute(database);
  return rows.map(({ id }) => id);
};

test('records older than their retention are deleted in any number; younger or unfinished ones stay', async () => {
  const { database } = await createTestDatabase();
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    select n % 3, day::date, 'invalid', 'source', 'field-' || n, 1, now(), now(), 'x'
    from generate_series(1, 6000) n, unnest(array['2026-01-29', '2026-01-30']) day`.execute(
    database,
  );
  await insertTestWorkspace(database, 1);
  const made = (state: ImportState, ageDays: number) =>
    makeImport(database, state, ageDays, NOW_MS);
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
  expect(await importIds(database)).toEqual(staying);
});

test('a worker forgets the imports that ended IMPORTS_KEPT_DAYS ago', async () => {
  const { database, url } = await createTestDatabase();
  await insertTestWorkspace(database, 1);
  const made = (ageDays: number) => makeImport(database, 'imported', ageDays, Date.now());
  await made(4);
  const younger = await made(2);
  const worker = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    SHARD_COUNT: '1',
    WORKER_PORT: '0',
    IMPORTS_KEPT_DAYS: '3',
  });
  await vi.waitFor(async () => expect(await importIds(database)).toEqual([younger]), 60_000);
  await worker.kill('SIGTERM');
}, 180_000);
