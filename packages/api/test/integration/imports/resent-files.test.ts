/** A file that is sent twice with its Idempotency-Key. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { countImports, CSV, FIELDS, form } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const importCount = () => countImports(api.database);

describe('a file that is sent again with the same Idempotency-Key', () => {
  const send = async (
    idempotencyKey: string,
    file = CSV,
    fields: Record<string, string> = FIELDS,
  ) => {
    const { payload, headers } = await form(fields, file);
    const sent = { payload, headers: { ...headers, 'idempotency-key': idempotencyKey } };
    return api.call('POST', '/v1/imports', sent);
  };

  test('I38: is the same import, and the second file is not stored', async () => {
    const first = await send('again');
    const before = await importCount();
    const again = await send('again');
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toBe(first.body);
    expect(await importCount()).toBe(before);
  });

  test.each([
    ['file', CSV.replace('ann', 'bob'), FIELDS],
    ['description', CSV, { ...FIELDS, description: 'another' }],
  ])('I38: with another %s is 422 and is not stored', async (what, file, fields) => {
    await send(`other-${what}`);
    const before = await importCount();
    const other = await send(`other-${what}`, file, fields);
    expectProblem(other, 422, 'idempotency_key_reused');
    expect(await importCount()).toBe(before);
  });

  test('I38: is not imported twice if the process died before its answer', async () => {
    const first = await send('died');
    // The import is under way, its answer was never kept.
    await sql`
      update idempotency_keys set answer = null, locked_until = ${new Date(api.clock.nowMs)}
       where started_at = (select max(started_at) from idempotency_keys)`.execute(api.database);
    const before = await importCount();
    const again = await send('died');
    expect(again.headers['idempotent-replayed']).toBeUndefined();
    expect(again.body).toBe(first.body);
    expect(await importCount()).toBe(before);
  });
});
