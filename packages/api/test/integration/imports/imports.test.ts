/** Imports over HTTP once they are made: watched, cancelled, listed. */
import { appendImportChunk } from '@sluice/database/imports/import-chunks';
import { cancelImport, insertImport } from '@sluice/database/imports/import-changes';
import { advanceImport, claimImport } from '@sluice/database/imports/import-claims';
import { type ImportRow } from '@sluice/database/imports/imports';
import { insertImportProblems } from '@sluice/database/imports/import-problems';
import { BY_TEST, untilLockWaiters } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { CSV, FIELDS, form, storedFile } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

describe('an import', () => {
  const make = async () =>
    (await api.call('POST', '/v1/imports', await form(FIELDS, CSV))).json().import.id as number;

  test('shows its progress, and its row problems as CSV that is safe to open', async () => {
    const importId = await make();
    const columns = ['_svc_name', '_svc_customer_id', '=note'];
    await sql`delete from imports where import_id <> ${importId}`.execute(api.database);
    const claimed = await claimImport(api.database, 60_000);
    const step = { leaseMs: 60_000, nowMs: api.clock.nowMs };
    const batch = { nextByte: 25, rowsRead: 3, rowsImported: 1, rowsFailed: 2, rowsWarned: 1 };
    await advanceImport(api.database, claimed!, { ...step, state: 'importing', columns, batch });
    await insertImportProblems(api.database, claimed!, [
      {
        severity: 'error',
        rowNumber: 2,
        position: 0,
        column: '_svc_name',
        code: 'required',
        message: '_svc_name is required',
        record: ['', 'ann@example.com', '=HYPERLINK("x")'],
      },
      {
        severity: 'warning',
        rowNumber: 3,
        position: 0,
        column: '',
        code: 'x',
        message: 'y',
        record: ['a', '-1', '-x'],
      },
    ]);
    const shown = (await api.call('GET', `/v1/imports/${importId}`)).json().import;
    expect(shown).toMatchObject({
      state: 'importing',
      percent: Math.floor((100 * 25) / CSV.length),
      rows_read: 3,
      rows_imported: 1,
      rows_failed: 2,
      rows_with_warnings: 1,
    });
    const errors = await api.call('GET', shown.errors_url);
    expect(errors.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(errors.body).toBe(
      "row_number,severity,column,code,message,_svc_name,_svc_customer_id,'=note\r\n" +
        '3,error,_svc_name,required,_svc_name is required,,ann@example.com,"\'=HYPERLINK(""x"")"\r\n',
    );
    const warnings = await api.call('GET', shown.warnings_url);
    expect(warnings.body.split('\r\n')[1]).toBe("4,warning,,x,y,a,-1,'-x");
  });

  test('that is cancelled while a piece of its file comes keeps no piece', async () => {
    const { database, a, clock } = api;
    const given = { name: 'Orders', description: null, identifier: 'email' } as const;
    const key = (await insertImport(
      database,
      {
        ...given,
        environmentId: a.environmentId,
        dataToProcess: 'all',
        dataFileUrl: null,
        nowMs: clock.nowMs,
      },
      BY_TEST,
    )) as ImportRow;
    const transaction = await database.startTransaction().execute();
    await appendImportChunk(transaction, key, {
      fencing: 0,
      bytes: Buffer.from(CSV),
      leaseMs: 0,
      nowMs: clock.nowMs,
      unfinishedSizeBytesMax: 1_000,
      storage: { sizeBytesMax: 1e6, sharePercent: 25 },
    });
    const cancelled = cancelImport(database, key, BY_TEST, clock.nowMs);
    await untilLockWaiters(database, 1);
    await transaction.commit().execute();
    expect(await cancelled).toMatchObject({ state: 'canceled' });
    expect(await storedFile(database, key.importId)).toHaveLength(0);
  });

  test('is cancelled once, and not when it has ended', async () => {
    const importId = await make();
    const first = await api.call('POST', `/v1/imports/${importId}/cancel`);
    expect(first.json().import.state).toBe('canceled');
    expect(await storedFile(api.database, importId)).toHaveLength(0);
    expectProblem(await api.call('POST', `/v1/imports/${importId}/cancel`), 409, 'conflict');
  });

  test('is listed newest first, in pages', async () => {
    const ids = [await make(), await make(), await make()];
    const first = (await api.call('GET', '/v1/imports?limit=2')).json();
    expect(first.imports.map(({ id }: { id: number }) => id)).toEqual([ids[2], ids[1]]);
    const second = (await api.call('GET', `/v1/imports?limit=2&start=${first.next}`)).json();
    expect(second.imports[0].id).toBe(ids[0]);
  });
});
