/** Bounds of a workspace whose imports do not end: their number, their bytes, its share of the storage. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { countImports, CSV, FIELDS, form } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const importCount = () => countImports(api.database);

// All workspaces share one Postgres: files that wait to be imported must not fill it.
describe('a workspace whose imports do not end', () => {
  /** As many as are wanted, in workspace `environmentId`. */
  const insertUnfinished = async (environmentId: number, count: number, sizeBytes: number) => {
    const now = new Date(api.clock.nowMs);
    await sql`
      insert into imports (environment_id, name, identifier, data_to_process, state, size_bytes, created_at, updated_at)
      select ${environmentId}::int, 'waits', 'id', 'all', 'preprocessed', ${sizeBytes}::bigint, ${now}::timestamptz, ${now}::timestamptz
        from generate_series(1, ${count}::int)`.execute(api.database);
  };
  const post = async (tenant: Tenant) => {
    const body = { import: { ...FIELDS, data_file_url: 'https://files.example/a.csv' } };
    return api.call('POST', '/v1/imports', { key: tenant.key, body });
  };
  let tenantCount = 0;
  const newTenant = () => insertTenant(api.database, `key_of_importer_${++tenantCount}`);

  test('gets no further one past as many as it may have, until one is cancelled; others do', async () => {
    const tenant = await newTenant();
    await insertUnfinished(tenant.environmentId, 98, 0);
    const last = (await post(tenant)).json().import;
    const [one, other] = await Promise.all([post(tenant), post(tenant)]);
    expect(new Set([one.statusCode, other.statusCode])).toEqual(new Set([200, 409]));
    const refused = one.statusCode === 409 ? one : other;
    expectProblem(refused, 409, 'limit_reached');
    expect(refused.json().meta.limit).toBe(100);
    expect(refused.json().detail).toMatch(/cancel one/);
    const before = await importCount();
    const asForm = { ...(await form(FIELDS, CSV)), key: tenant.key };
    expectProblem(await api.call('POST', '/v1/imports', asForm), 409, 'limit_reached');
    expect(await importCount()).toBe(before);
    expect((await post(await newTenant())).statusCode).toBe(200);

    await api.call('POST', `/v1/imports/${last.id}/cancel`, { key: tenant.key });
    expect((await api.call('POST', '/v1/imports', asForm)).statusCode).toBe(200);
  });

  test('beyond its share of the storage gets no further file, while another one does', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const before = await importCount();
    await insertUnfinished(tenant.environmentId, 1, 7.5e11);
    const file = await form(FIELDS, Buffer.alloc(2_000_000, 'a'));
    const refused = await api.app.inject({
      method: 'POST',
      url: '/v1/imports',
      ...file,
      headers: { ...file.headers, authorization: `Bearer ${tenant.key}` },
    });
    expectProblem(refused, 503, 'unavailable');
    expect(refused.headers['retry-after']).toBeDefined();
    expect(await importCount()).toBe(before + 1);
    const taken = await api.call('POST', '/v1/imports', { ...file, key: other.key });
    expect(taken.statusCode).toBe(200);
    await sql`delete from imports where environment_id = ${tenant.environmentId}`.execute(
      api.database,
    );
  });

  test('gets 409 for a file past the total size of its imports, and stores no part of it', async () => {
    const tenant = await newTenant();
    await insertUnfinished(tenant.environmentId, 4, 5_000_000);
    const before = await importCount();
    const file = { ...(await form(FIELDS, Buffer.alloc(6_000_000, 'a'))), key: tenant.key };
    const refused = await api.call('POST', '/v1/imports', file);
    expectProblem(refused, 409, 'limit_reached');
    expect(refused.json().meta.limit).toBe(25_000_000);
    expect(refused.json().detail).toMatch(/25000000 bytes together.*cancel one/);
    expect(await importCount()).toBe(before);
    expect((await api.call('POST', '/v1/imports', { ...file, key: api.b.key })).statusCode).toBe(
      200,
    );

    await sql`update imports set state = 'imported' where environment_id = ${tenant.environmentId}`.execute(
      api.database,
    );
    expect((await api.call('POST', '/v1/imports', file)).statusCode).toBe(200);
  });
});
