/** Imports on a real Postgres: what becomes of the rows, of the file, and of a worker that dies. */
import { Readable } from 'node:stream';
import type { Database } from '@sluice/database/connection';
import { appendImportChunk } from '@sluice/database/import-chunks';
import { listImportProblems } from '@sluice/database/import-problems';
import {
  cancelImport,
  claimImport,
  findImport,
  finishUpload,
  insertImport,
  type ImportKey,
  type NewImport,
} from '@sluice/database/imports';
import { NumberStock } from '@sluice/database/numbers';
import { createTestDatabase } from '@sluice/database/testing';
import type { TailLine } from '@sluice/domain/tail';
import { identify, suppress } from '@sluice/domain/testing';
import { createIdGenerator } from '@sluice/platform/new-id';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { FetchFault } from '../../src/fetch-file.ts';
import { processEnvelope } from '../../src/process-envelope.ts';
import { runNextImport, type RunImportDeps } from '../../src/run-import.ts';

const LEASE_MS = 15_000;
const newId = createIdGenerator(Date.now);

let database: Database;
let nowMs: number;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
  nowMs = Date.now();
  await sql`insert into accounts (account_id, name) values (1, 'test')`.execute(database);
  await sql`insert into environments (account_id, environment_id, name, webhook_signing_key)
            values (1, 1, 'test', 'k'), (1, 2, 'other', 'k')`.execute(database);
});

const depsWith = (overrides: Partial<RunImportDeps> = {}): RunImportDeps => ({
  database,
  numbers: new NumberStock(),
  newId,
  now: () => nowMs,
  fetchFile: () => Readable.from([]),
  wakeLane: () => Promise.resolve(),
  pause: () => Promise.resolve(),
  leaseMs: LEASE_MS,
  sizeBytesMax: 1e9,
  stopping: new AbortController().signal,
  ...overrides,
});

async function people(...ids: string[]): Promise<void> {
  const operations = ids.map((id) => identify(`id:${id}`));
  for (let from = 0; from < operations.length; from += 1_000)
    await processEnvelope(depsWith(), {
      id: newId(),
      operations: operations.slice(from, from + 1_000),
    });
}

async function upload(text: string | Buffer, more: Partial<NewImport> = {}): Promise<ImportKey> {
  const made = await insertImport(database, {
    environmentId: 1,
    name: 'test',
    description: null,
    identifier: 'id',
    dataToProcess: 'all',
    dataFileUrl: null,
    nowMs,
    ...more,
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 100_000) {
    const piece = bytes.subarray(at, at + 100_000);
    expect(await appendImportChunk(database, made, 0, piece, 0, nowMs)).toBe(true);
  }
  await finishUpload(database, made, nowMs);
  return made;
}

const shown = async (key: ImportKey) => (await findImport(database, key)) as object;

async function events(environmentId = 1) {
  const { rows } = await sql<{ name: string; eventId: string; data: object; id: string }>`
    select e.name, e.event_id as "eventId", e.data, p.id from events e join people p using (environment_id, person_id)
    where e.environment_id = ${environmentId} and e.kind = 'event'
    order by e.event_id`.execute(database);
  return rows;
}

const problems = async (key: ImportKey, severity: 'error' | 'warning') =>
  listImportProblems(database, key, severity, { rowNumber: 0, position: 0 }, 1_000);

const chunkCount = async (): Promise<number> => {
  const { rows } = await sql<{ count: string }>`select count(*) from import_chunks`.execute(
    database,
  );
  return Number(rows[0]?.count);
};

describe('an uploaded file', () => {
  test('gives its people their events, and says row by row what was wrong with the others', async () => {
    await people('ann', 'bob', 'gone');
    await processEnvelope(depsWith(), {
      id: newId(),
      operations: [suppress('id:gone')],
    });
    const key = await upload(
      [
        '\uFEFF_svc_name,_svc_customer_id,_svc_timestamp,cart.total,note',
        'bought,ann,2026-01-01 10:00:00,42,"two\nlines, ""quoted"""',
        'bought,nobody,,1,',
        ',bob,,1,',
        'bought,gone,,1,',
        '',
        'looked,bob,1767261600000,,',
        'late,bob,sometime,,',
      ].join('\r\n'),
    );
    expect(await runNextImport(depsWith())).toBe(true);
    expect(await shown(key)).toMatchObject({
      state: 'imported',
      rowsRead: 6,
      rowsImported: 2,
      rowsFailed: 4,
      rowsWarned: 1,
      error: null,
    });
    expect(await events()).toEqual([
      {
        name: 'bought',
        eventId: `import:${key.importId}:1`,
        id: 'ann',
        data: { 'cart.total': '42', note: 'two\nlines, "quoted"' },
      },
      { name: 'looked', eventId: `import:${key.importId}:5`, id: 'bob', data: {} },
    ]);
    expect(await problems(key, 'error')).toMatchObject([
      { rowNumber: 2, column: '_svc_customer_id', code: 'person_not_found' },
      { rowNumber: 3, column: '_svc_name', code: 'required', record: ['', 'bob', '', '1', ''] },
      { rowNumber: 4, column: '_svc_customer_id', code: 'suppressed' },
      { rowNumber: 6, column: '_svc_timestamp', code: 'invalid' },
    ]);
    expect(await problems(key, 'warning')).toMatchObject([
      { rowNumber: 5, code: 'timestamp_in_milliseconds' },
    ]);
    // Nobody was made, and the bytes are gone.
    const { rows } = await sql`select id from people where environment_id = 1`.execute(database);
    expect(rows).toHaveLength(2);
    expect(await chunkCount()).toBe(0);
    expect(await runNextImport(depsWith())).toBe(false);
  });

  test('by email finds people in either letter case, and by no other identifier', async () => {
    await processEnvelope(depsWith(), {
      id: newId(),
      operations: [identify('id:ann', { email: 'Ann@Example.com' })],
    });
    const key = await upload(
      '_svc_name,_svc_customer_id\na,ANN@example.com\nb,ann@other.example\n',
      { identifier: 'email' },
    );
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 1 });
    expect(await events()).toMatchObject([{ name: 'a', id: 'ann' }]);
  });

  test('of one workspace cannot name people of another', async () => {
    await people('ann');
    const key = await upload('_svc_name,_svc_customer_id\na,ann\n', { environmentId: 2 });
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({ state: 'imported', rowsImported: 0, rowsFailed: 1 });
    expect(await events()).toEqual([]);
  });

  test.each([
    ['', 'empty'],
    ['a,b\n1,2\n', '_svc_name'],
    ['_svc_name,_svc_customer_id\na,"b\n', 'never closed'],
    ['_svc_name,_svc_customer_id\na,b"c\n', 'quote'],
  ])('%j fails, and says why', async (text, reason) => {
    const key = await upload(text);
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({
      state: 'failed',
      error: expect.stringContaining(reason),
    });
    expect(await chunkCount()).toBe(0);
  });

  test('is told row by row to whoever watches its workspace, and costs nothing where nobody does', async () => {
    await people('ann');
    const told: { environmentId: number; lines: readonly TailLine[] }[] = [];
    const tail = {
      isWatched: (environmentId: number) => environmentId === 1,
      tell: (environmentId: number, lines: readonly TailLine[]) =>
        void told.push({ environmentId, lines }),
    };
    const text = [
      '_svc_name,_svc_customer_id,_svc_timestamp,secret',
      'bought,ann,1767261600000,1',
      'bought,nobody,,2',
    ].join('\n');
    const { importId } = await upload(text);
    await upload(text, { environmentId: 2 });
    expect(await runNextImport(depsWith({ tail }))).toBe(true);
    expect(await runNextImport(depsWith({ tail }))).toBe(true);
    const place = { source: 'imports', import_id: importId };
    expect(told).toEqual([
      {
        environmentId: 1,
        lines: [
          expect.objectContaining({
            kind: 'received',
            outcome: 'accepted',
            name: 'bought',
            people: [{ id: 'ann' }],
            details: { type: 'event.track', source: 'imports', event_id: `import:${importId}:1` },
          }),
          expect.objectContaining({
            outcome: 'mended',
            details: expect.objectContaining({ ...place, row: 1, field: '_svc_timestamp' }),
          }),
          expect.objectContaining({
            kind: 'refused',
            outcome: 'refused',
            details: expect.objectContaining({ ...place, row: 2, code: 'person_not_found' }),
          }),
        ],
      },
    ]);
  });

  test('with a value that Postgres refuses loses that row and no other', async () => {
    await people('ann', 'bob');
    await sql`alter table events add constraint refused check (name <> 'refused')`.execute(
      database,
    );
    const key = await upload(
      '_svc_name,_svc_customer_id\na,ann\nrefused,ann\nb,bob\nrefused,bob\nc,ann\n',
    );
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({ state: 'imported', rowsImported: 3, rowsFailed: 2 });
    expect(await problems(key, 'error')).toMatchObject([{ rowNumber: 2 }, { rowNumber: 4 }]);
    expect((await events()).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });
});

describe('a worker', () => {
  const LINES = 5_000;
  const file = () =>
    `_svc_name,_svc_customer_id,note\n${Array.from({ length: LINES }, (_, n) => `e-${n},p-${n % 7},"a, ""b""\n${'x'.repeat(n % 90)}"\n`).join('')}`;
  const PEOPLE = Array.from({ length: 7 }, (_, n) => `p-${n}`);

  test('that dies anywhere is followed by one that goes on: every row once', async () => {
    await people(...PEOPLE);
    const key = await upload(file());
    let statementsLeft = 0;
    // As a kill does: what is in hand is rolled back, nothing is said to anybody.
    const dying = database.withPlugin({
      transformQuery: ({ node }) => {
        if (statementsLeft-- <= 0) throw new Error('killed');
        return node;
      },
      transformResult: ({ result }) => Promise.resolve(result),
    });
    for (let statements = 3, runs = 0; runs < 40; statements += 2, runs++) {
      statementsLeft = statements;
      await runNextImport(depsWith({ database: dying })).catch(() => undefined);
      // Its lease has to end first.
      nowMs += 1;
      expect(await claimImport(database, 0, nowMs)).toBeUndefined();
      nowMs += LEASE_MS;
    }
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({
      state: 'imported',
      rowsRead: LINES,
      rowsImported: LINES,
    });
    const { rows } = await sql<{ count: string; distinct: string }>`
      select count(*), count(distinct event_id) as distinct from events where kind = 'event'`.execute(
      database,
    );
    expect(rows[0]).toEqual({ count: String(LINES), distinct: String(LINES) });
  }, 60_000);

  test('that was away while another took its import writes nothing more', async () => {
    await people(...PEOPLE);
    const key = await upload(file());
    let hasBeenAway = false;
    const slow = depsWith({
      stopping: {
        get aborted() {
          if (!hasBeenAway) {
            hasBeenAway = true;
            // Between two batches: its lease ends.
            nowMs += LEASE_MS + 1;
          }
          return false;
        },
      } as AbortSignal,
    });
    const first = runNextImport(slow);
    await expect.poll(() => hasBeenAway, { timeout: 10_000 }).toBe(true);
    const second = runNextImport(depsWith());
    await Promise.all([first, second]);
    expect(await shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
    expect(await events()).toHaveLength(LINES);
  });

  test('that is told to stop finishes its batch and gives the import back at once', async () => {
    await people(...PEOPLE);
    const key = await upload(file());
    const stopping = AbortSignal.abort();
    await runNextImport(depsWith({ stopping }));
    expect(await shown(key)).toMatchObject({ state: 'importing', rowsRead: 1_000 });
    nowMs += 1;
    await runNextImport(depsWith());
    expect(await shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
  });

  test('stops at a cancelled import, whose rows until then stay', async () => {
    await people(...PEOPLE);
    const key = await upload(file());
    await runNextImport(depsWith({ stopping: AbortSignal.abort() }));
    expect(await cancelImport(database, key, nowMs)).toMatchObject({ state: 'canceled' });
    nowMs += 1;
    expect(await runNextImport(depsWith())).toBe(false);
    expect(await events()).toHaveLength(1_000);
    expect(await chunkCount()).toBe(0);
    expect(await cancelImport(database, key, nowMs)).toBeUndefined();
  });
});

describe('a file behind a URL', () => {
  const fromUrl = (dataFileUrl = 'https://files.example/events.csv') =>
    insertImport(database, {
      environmentId: 1,
      name: 'test',
      description: null,
      identifier: 'id',
      dataToProcess: 'only_existing',
      dataFileUrl,
      nowMs,
    });
  const TEXT = '_svc_name,_svc_customer_id\na,ann\n';

  test('is fetched once more where that may help, from its start, and imported', async () => {
    await people('ann');
    const key = await fromUrl();
    let tries = 0;
    async function* fetchFile() {
      yield Buffer.from(TEXT.slice(0, 20));
      if (++tries < 3) throw new FetchFault('the file broke off: reset', true);
      yield Buffer.from(TEXT.slice(20));
    }
    await runNextImport(depsWith({ fetchFile }));
    expect(await shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 1,
      sizeBytes: TEXT.length,
    });
  });

  test('that is not there, or too large, fails and says why', async () => {
    const missing = await fromUrl();
    // oxlint-disable-next-line require-yield
    async function* fetchFile(): AsyncGenerator<Buffer> {
      throw new FetchFault('the URL answered 404', false);
    }
    await runNextImport(depsWith({ fetchFile }));
    expect(await shown(missing)).toMatchObject({ state: 'failed', error: 'the URL answered 404' });
    const large = await fromUrl();
    await runNextImport(
      depsWith({ sizeBytesMax: 10, fetchFile: () => Readable.from([Buffer.from(TEXT)]) }),
    );
    expect(await shown(large)).toMatchObject({
      state: 'failed',
      error: 'the file is larger than 10 bytes',
    });
    expect(await chunkCount()).toBe(0);
  });
});

test('an upload of which nothing came for an hour is given up', async () => {
  const key = await insertImport(database, {
    environmentId: 1,
    name: 'test',
    description: null,
    identifier: 'id',
    dataToProcess: 'all',
    dataFileUrl: null,
    nowMs,
  });
  await appendImportChunk(database, key, 0, Buffer.from('_svc'), 0, nowMs);
  nowMs += 3_599_000;
  expect(await runNextImport(depsWith())).toBe(false);
  expect(await shown(key)).toMatchObject({ state: 'preprocessing' });
  nowMs += 2_000;
  await runNextImport(depsWith());
  expect(await shown(key)).toMatchObject({ state: 'failed' });
  expect(await chunkCount()).toBe(0);
});
