/**
 * One large CSV import by a real worker, from file to rows. It measures rows and megabytes a second,
 * and the worker's peak memory, early and at the end. The memory must not depend on the size.
 *
 * The file is made here and stored as the API stores an upload. Postgres is durable (`fsync` on), as
 * for an operator.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Database } from '@sluice/database/connection/connection';
import { appendImportChunk } from '@sluice/database/imports/import-chunks';
import { finishUpload, insertImport } from '@sluice/database/imports/import-changes';
import { findImport, type ImportRow } from '@sluice/database/imports/imports';
import { sql } from 'kysely';
import type { Report } from './report.ts';
import { withWorld } from './world.ts';

const MEBIBYTE = 1_048_576;
const PEOPLE = 1_000;
const SAMPLE_INTERVAL_MS = 100;

export async function benchImports(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      megabytes: { type: 'string', default: '1024' },
      'row-bytes': { type: 'string', default: '4096' },
    },
  });
  const sizeBytes = Number(values.megabytes) * MEBIBYTE;
  const rowBytes = Number(values['row-bytes']);
  return withWorld('full', async (world) => {
    const { database } = world;
    const made = await storeFile(database, sizeBytes, rowBytes);
    const worker = await world.startService('worker', 18_085, {
      WORKER_SWEEP_INTERVAL_MS: '100',
      SHARD_COUNT: '4',
    });
    await finishUpload(database, made, undefined, Date.now());
    return watch(database, made, sizeBytes, rowBytes, () => worker.residentBytes());
  });
}

async function storeFile(
  database: Database,
  sizeBytes: number,
  rowBytes: number,
): Promise<ImportRow> {
  await sql`
    insert into people (environment_id, person_id, id, attributes, created_at, updated_at)
    select 1, 1000000 + n, 'p-' || n, '{}', now(), now() from generate_series(0, ${PEOPLE - 1}::int) n`.execute(
    database,
  );
  await sql`
    insert into person_identifiers (environment_id, person_id, kind, value)
    select 1, 1000000 + n, 'id', 'p-' || n from generate_series(0, ${PEOPLE - 1}::int) n`.execute(
    database,
  );
  const made = await insertImport(
    database,
    {
      environmentId: 1,
      name: 'bench',
      description: null,
      identifier: 'id',
      dataToProcess: 'all',
      dataFileUrl: null,
      nowMs: Date.now(),
    },
    { actor: { type: 'system' } },
  );
  if (made === 'too_many') throw new Error('a new workspace has unfinished imports');
  const payload = 'x'.repeat(Math.max(1, rowBytes - 60));
  let text = '_svc_name,_svc_customer_id,_svc_timestamp,payload\n';
  for (let stored = 0, row = 0; stored < sizeBytes;) {
    while (text.length < MEBIBYTE)
      text += `Order Placed,p-${row++ % PEOPLE},2026-11-01 10:00:00,"${payload}"\n`;
    await appendImportChunk(database, made, {
      fencing: 0,
      bytes: Buffer.from(text),
      leaseMs: 0,
      nowMs: Date.now(),
      unfinishedSizeBytesMax: Number.MAX_SAFE_INTEGER,
      storage: { sizeBytesMax: Number.MAX_SAFE_INTEGER, sharePercent: 100 },
    });
    stored += text.length;
    text = '';
  }
  return made;
}

async function watch(
  database: Database,
  made: ImportRow,
  sizeBytes: number,
  rowBytes: number,
  residentBytes: () => Promise<number>,
): Promise<Report> {
  const startedAtMs = performance.now();
  let earlyBytes = 0;
  let peakBytes = 0;
  for (;;) {
    const now = await residentBytes();
    const row = await findImport(database, made);
    if (row === undefined || row.state === 'failed') throw new Error(`failed: ${row?.error}`);
    if (row.nextByte < sizeBytes / 10) earlyBytes = Math.max(earlyBytes, now);
    peakBytes = Math.max(peakBytes, now);
    if (row.state === 'imported') {
      const seconds = (performance.now() - startedAtMs) / 1_000;
      if (row.rowsImported !== row.rowsRead) throw new Error(`${row.rowsFailed} rows failed`);
      const megabytes = (bytes: number) => Math.round(bytes / MEBIBYTE);
      console.log(
        `${megabytes(sizeBytes)} MB, ${row.rowsImported.toLocaleString('en')} rows in ${seconds.toFixed(1)} s, ` +
          `worker at most ${megabytes(peakBytes)} MB (${megabytes(earlyBytes)} MB in the first tenth)`,
      );
      return {
        bench: 'imports',
        ratios: { 'peak/early memory': peakBytes / earlyBytes },
        rates: { rows: row.rowsImported / seconds, 'MB/s': megabytes(sizeBytes) / seconds },
        latencyMs: {},
        details: {
          file_mb: megabytes(sizeBytes),
          row_bytes: rowBytes,
          rows: row.rowsImported,
          early_resident_mb: megabytes(earlyBytes),
          peak_resident_mb: megabytes(peakBytes),
        },
      };
    }
    await sleep(SAMPLE_INTERVAL_MS);
  }
}
