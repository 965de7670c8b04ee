/** The settings of a workspace: rights to change them, their values, and their entries in the audit log. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const put = (environment: object, environmentId = api.a.environmentId, key = api.a.token) =>
  api.call('PUT', `/v1/accounts/${api.a.accountId}/environments/${environmentId}`, {
    key,
    body: { environment },
  });

test('a change sets the given fields, keeps the others, and writes an entry to the audit log', async () => {
  const id = api.a.environmentId;
  expect((await put({ name: 'Shop' })).json()).toEqual({
    environment: { id, name: 'Shop', phone_identifies: false, portal_origins: [] },
  });
  expect((await put({ phone_identifies: true })).json()).toEqual({
    environment: { id, name: 'Shop', phone_identifies: true, portal_origins: [] },
  });
  // As it is already: no entry is recorded.
  expect((await put({ phone_identifies: true })).statusCode).toBe(200);
  const shown = await api.call('GET', `/v1/accounts/${api.a.accountId}`, { key: api.a.token });
  expect(shown.json().account.environments).toMatchObject([{ id, name: 'Shop' }]);
  const { rows } = await sql`
    select environment_id as id, object_type as type, action, changes from audit_logs
     where account_id = ${api.a.accountId} order by audit_log_id`.execute(api.database);
  const entry = { id, type: 'environment', action: 'updated' };
  expect(rows).toEqual([
    {
      ...entry,
      changes: [expect.objectContaining({ attribute: 'name', to: 'Shop' })],
    },
    {
      ...entry,
      changes: [expect.objectContaining({ attribute: 'phone_identifies', from: false, to: true })],
    },
  ]);
});

test('a workspace of another account, an unknown workspace and a deleted workspace are 404', async () => {
  const { rows } = await sql<{ id: number }>`
    insert into environments (account_id, name, webhook_signing_key, deleted_at)
    values (${api.a.accountId}, 'gone', 'key', now()) returning environment_id as id`.execute(
    api.database,
  );
  for (const id of [api.b.environmentId, 2_000_000_000, rows[0]!.id])
    expectProblem(await put({ name: 'Mine' }, id), 404, 'not_found');
  const { rows: named } = await sql`
    select from environments where name = 'Mine'`.execute(api.database);
  expect(named).toEqual([]);
});

test.each([
  [{}, 'environment'],
  [{ name: '' }, 'environment.name'],
  [{ name: 'a\nb' }, 'environment.name'],
  [{ phone_identifies: 'yes' }, 'environment.phone_identifies'],
  [{ webhook_signing_key: 'mine' }, 'environment.webhook_signing_key'],
])('%j is refused by name', async (environment, field) => {
  const refused = await put(environment);
  expectProblem(refused, 422, 'validation_failed');
  expect(refused.json().errors[0].field).toBe(field);
});

test('only an administrator of the account may', async () => {
  const member = 'sa_sandbox_member';
  await insertToken(api.database, api.a.accountId, member, { role: 'member' });
  expectProblem(await put({ name: 'Theirs' }, api.a.environmentId, member), 403, 'forbidden');
});
