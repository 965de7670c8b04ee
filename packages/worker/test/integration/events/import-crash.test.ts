/**
 * A large import whose worker process is killed in the middle.
 *
 * Real worker processes read it.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { appendImportChunk } from '@sluice/database/imports/import-chunks';
import { finishUpload, insertImport } from '@sluice/database/imports/import-changes';
import { findImport, type ImportRow } from '@sluice/database/imports/imports';
import { NumberStock } from '@sluice/database/people/numbers';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { identify } from '@sluice/domain/testing/sample-operations';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const ROWS = 32_000;
const ROW_SIZE_BYTES = 2_000;
const MEBIBYTE = 1_048_576;

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

/** The batch that passes row 3,000 waits inside its transaction until `use` is done; `held` resolves when it is there. */
async function holdImport(
  database: Database,
  use: (held: () => Promise<void>) => Promise<void>,
): Promise<void> {
  await sql`
    create function hold_import() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return new;
    end $$`.execute(database);
  await sql`
    create trigger hold_import before update on imports for each row
    when (old.rows_read <= 3000 and new.rows_read > 3000) execute function hold_import()`.execute(
    database,
  );
  await database.connection().execute(async (holder) => {
    await sql`select pg_advisory_lock(1)`.execute(holder);
    await use(() => vi.waitFor(() => isWaitedFor(database), { timeout: 150_000, interval: 20 }));
    await sql`select pg_advisory_unlock(1)`.execute(holder);
  });
}

async function isWaitedFor(database: Database): Promise<void> {
  const { rows } = await sql`
    select from pg_locks where locktype = 'advisory' and objid = 1 and not granted
       and database = (select oid from pg_database where datname = current_database())`.execute(
    database,
  );
  expect(rows).toHaveLength(1);
}

test('a worker killed in the middle of 64 MB is followed by another: every row once, in the memory of a few of its pieces', async () => {
  const { database, url } = await createTestDatabase();
  const newId = createIdGenerator(Date.now);
  await processCommitBatch(
    { database, numbers: new NumberStock(), takenIds: new TakenIdWatch(), newId, now: Date.now },
    { id: newId(), operations: Array.from({ length: 100 }, (_, n) => identify(`id:p-${n}`)) },
  );
  await insertTestWorkspace(database, 1);
  const made = (await insertImport(
    database,
    {
      environmentId: 1,
      name: 'large',
      description: null,
      identifier: 'id',
      dataToProcess: 'all',
      dataFileUrl: null,
      nowMs: Date.now(),
    },
    BY_TEST,
  )) as ImportRow;
  const keep = (text: string) =>
    appendImportChunk(database, made, {
      fencing: 0,
      bytes: Buffer.from(text),
      leaseMs: 0,
      nowMs: Date.now(),
      unfinishedSizeBytesMax: 1e10,
      storage: { sizeBytesMax: 1e11, sharePercent: 25 },
    });
  await keep('_svc_name,_svc_customer_id,note,payload\n');
  const payload = 'x'.repeat(ROW_SIZE_BYTES);
  for (let from = 0; from < ROWS; from += 500) {
    let text = '';
    for (let n = from; n < from + 500; n++) text += `e-${n},p-${n % 100},"a\nb",${payload}\n`;
    await keep(text);
  }
  await finishUpload(database, made, undefined, Date.now());

  await migrateQueues(url);
  const start = () =>
    startServiceUnderTest(
      MAIN,
      {
        DATABASE_URL: url,
        REDIS_URL: testRedisUrl(),
        QUEUE_PREFIX: uniquePrefix(),
        SHARD_COUNT: '2',
        WORKER_PORT: '0',
        WORKER_SWEEP_INTERVAL_MS: '50',
        // A worker that is silent inside a transaction for so long loses it, and on a busy machine one may be for a second.
        QUEUE_STALLED_AFTER_MS: '4000',
      },
      // Memory is collected on the main thread: other threads may not run on a busy machine while it grows. This changes
      // the thread that frees garbage. The file or its rows, kept by a worker, would stay and pass the bound.
      ['--disable-warning=ExperimentalWarning', '--single-threaded-gc'],
    );
  await holdImport(database, async (held) => {
    const first = await start();
    await held();
    await first.kill('SIGKILL');
  });
  const atDeath = (await findImport(database, made))?.rowsRead;
  expect(atDeath).toBeGreaterThan(0);
  expect(atDeath).toBeLessThan(ROWS);

  const second = await start();
  const startBytes = await residentBytes(second.pid);
  let peakBytes = 0;
  await vi.waitFor(
    async () => {
      peakBytes = Math.max(peakBytes, await residentBytes(second.pid));
      expect((await findImport(database, made))?.state).toBe('imported');
    },
    { timeout: 300_000, interval: 50 },
  );
  await second.kill('SIGTERM');
  // The file as text alone would be 64 MB more, as rows of it several times that.
  expect(peakBytes - startBytes).toBeLessThan(160 * MEBIBYTE);
  expect(await findImport(database, made)).toMatchObject({
    rowsRead: ROWS,
    rowsImported: ROWS,
    rowsFailed: 0,
  });
  const { rows } = await sql<{ count: string; names: string }>`
    select count(*), count(distinct name) as names from events where kind = 'event'`.execute(
    database,
  );
  expect(rows[0]).toEqual({ count: String(ROWS), names: String(ROWS) });
}, 600_000);
