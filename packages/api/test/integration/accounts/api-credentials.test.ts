/** Credentials: a secret is shown once, never kept, and out of force within a second of being revoked. */
import { listCredentials } from '@sluice/database/accounts/api-credentials';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
let path: string;
beforeAll(async () => {
  api = await startApi();
  path = `/v1/accounts/${api.a.accountId}/api_credentials`;
});
afterAll(() => api.close());

const call = (
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  options: Parameters<ApiUnderTest['call']>[2] = {},
) => api.call(method, url, { key: api.a.token, ...options });
const create = (body: object, key = api.a.token) => call('POST', path, { body, key });

describe('making one', () => {
  test.each([
    ['app', {}],
    ['tracking', {}],
    ['pipelines', {}],
    ['service_account', { role: 'billing_admin', scopes: ['usage:write'], read_only: true }],
  ])('of type %s shows its secret once and keeps only its hash', async (type, given) => {
    const isServiceAccount = type === 'service_account';
    const environment = isServiceAccount ? {} : { environment_id: api.a.environmentId };
    const answer = await create({ name: `A ${type}`, type, ...environment, ...given });
    expect(answer.statusCode).toBe(200);
    const { secret, api_credential: made } = answer.json();
    expect(made).toMatchObject({
      name: `A ${type}`,
      type,
      environment_id: isServiceAccount ? null : api.a.environmentId,
      token_hint: secret.slice(-4),
      role: isServiceAccount ? 'billing_admin' : null,
      revoked_at: null,
      read_only: isServiceAccount,
      testing: type === 'pipelines',
      created_at: new Date(api.clock.nowMs).toISOString(),
    });
    expect(made.site_id === null).toBe(type !== 'tracking');
    if (isServiceAccount) expect(secret).toMatch(/^sa_live_[0-9A-Za-z]{49}$/);

    const shown = await call('GET', `${path}/${made.id}`);
    expect(shown.json().api_credential).toEqual(made);
    const listed = (await call('GET', path)).json().api_credentials as { id: number }[];
    expect(listed.find(({ id }) => id === made.id)).toEqual(made);
    for (const changed of [
      await call('POST', `${path}/${made.id}/rotate`),
      await call('DELETE', `${path}/${made.id}`),
    ])
      expect(changed.json().api_credential).toMatchObject({ id: made.id, role: made.role });
    for (const table of ['api_credentials', 'audit_logs', 'service_accounts']) {
      const { rows } = await sql<{ row: unknown }>`
        select to_jsonb(t) as row from ${sql.table(table)} t where account_id = ${api.a.accountId}`.execute(
        api.database,
      );
      expect(JSON.stringify(rows)).not.toContain(secret);
    }
  });

  test('a token of a sandbox account begins with sa_sandbox_', async () => {
    await sql`update accounts set is_sandbox = true where account_id = ${api.b.accountId}`.execute(
      api.database,
    );
    const answer = await api.call('POST', `/v1/accounts/${api.b.accountId}/api_credentials`, {
      key: api.b.token,
      body: { name: 'a', type: 'service_account' },
    });
    expect(answer.json().secret).toMatch(/^sa_sandbox_/);
  });

  test('an app key opens its workspace, and a token opens only the routes of its role', async () => {
    const app = (
      await create({ name: 'a', type: 'app', environment_id: api.a.environmentId })
    ).json();
    expect((await call('GET', '/v1/workspaces', { key: app.secret })).statusCode).toBe(200);
    const member = (await create({ name: 'a', type: 'service_account' })).json();
    const account = `/v1/accounts/${api.a.accountId}`;
    expect((await call('GET', account, { key: member.secret })).statusCode).toBe(200);
    expectProblem(
      await call('GET', `${account}/all_users`, { key: member.secret }),
      403,
      'forbidden',
    );
  });

  test('a read-only app key can read but not write, and an address-bound app key works only from its addresses', async () => {
    const made = async (given: object) => {
      const own = { name: 'a', type: 'app', environment_id: api.a.environmentId, ...given };
      const { secret, api_credential } = (await create(own)).json();
      expect(api_credential).toMatchObject(given);
      return secret as string;
    };
    const url = '/v1/reporting_webhooks';
    const body = { name: 'a', endpoint: 'https://example.com', events: ['email_sent'] };
    const reading = await made({ read_only: true });
    expect((await call('GET', url, { key: reading })).statusCode).toBe(200);
    expectProblem(await call('POST', url, { key: reading, body }), 403, 'read_only');
    // A search makes no change, though its filter is a body.
    const search = {
      object_type_id: 1,
      filter: { object_attribute: { field: 'plan', operator: 'eq', value: 'premium' } },
    };
    const found = await call('POST', '/v1/objects', { key: reading, body: search });
    expect(found.statusCode).toBe(200);
    const elsewhere = await made({ ip_allowlist: ['203.0.113.0/24'] });
    const { counts } = api.refusedCredentials;
    const noted = counts.get('ip_not_allowed') ?? 0;
    expectProblem(await call('GET', url, { key: elsewhere }), 403, 'ip_not_allowed');
    expect(counts.get('ip_not_allowed')).toBe(noted + 1);
    const here = await made({ ip_allowlist: ['203.0.113.0/24', '127.0.0.1'] });
    expect((await call('POST', url, { key: here, body })).statusCode).toBe(200);
  });

  test.each([
    [{ name: 'a', type: 'pipelines', environment_id: 1, read_only: true }, 'read_only'],
    [{ name: 'a', type: 'tracking', environment_id: 1, ip_allowlist: [] }, 'ip_allowlist'],
    [{ name: 'a', type: 'app', environment_id: 1, role: 'member' }, 'role'],
    [{ name: 'a', type: 'app', environment_id: 1, scopes: [] }, 'scopes'],
    [{}, 'name'],
    [{ name: 'a' }, 'type'],
    [{ name: 'a', type: 'root' }, 'type'],
    [{ name: 'a', type: 'app' }, 'environment_id'],
    [{ name: 'a', type: 'app', environment_id: 2_147_483_648 }, 'environment_id'],
    [{ name: 'a', type: 'app', environment_id: 2_000_000_000 }, 'environment_id'],
    [{ name: 'a', type: 'service_account', environment_id: 1 }, 'environment_id'],
    [{ name: 'a', type: 'service_account', expires_at: '2026-02-30T00:00:00Z' }, 'expires_at'],
    [{ name: 'a', type: 'service_account', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ name: 'a', type: 'service_account', expires_at: '9999-12-31T23:59:59-00:01' }, 'expires_at'],
    [{ name: 'a', type: 'service_account', ip_allowlist: ['10.0.0.0/33'] }, 'ip_allowlist.0'],
    [{ name: 'a', type: 'service_account', ip_allowlist: ['here'] }, 'ip_allowlist.0'],
    [{ name: 'a', type: 'service_account', secret: 'mine' }, 'secret'],
    [{ name: 'a\nb', type: 'service_account' }, 'name'],
  ])('%j is 422 and names the field', async (body, field) => {
    const { errors } = expectProblem(await create(body), 422, 'validation_failed');
    expect(errors.map((error) => error.field)).toContain(field);
  });

  test('a workspace of another account is answered like a workspace that does not exist', async () => {
    const answerFor = async (id: number) =>
      expectProblem(
        await create({ name: 'a', type: 'app', environment_id: id }),
        422,
        'validation_failed',
      );
    expect((await answerFor(api.b.environmentId)).errors).toEqual(
      (await answerFor(2_000_000_000)).errors,
    );
  });
});

describe('the list', () => {
  test('is sorted by id, can be limited to one workspace, and has only credentials of the account', async () => {
    const ids = (answer: {
      json(): { api_credentials: { id: number; environment_id: number }[] };
    }) => answer.json().api_credentials;
    const all = ids(await call('GET', path));
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => a - b));
    const ofWorkspace = ids(await call('GET', `${path}?environment_id=${api.a.environmentId}`));
    expect(ofWorkspace).toEqual(all.filter(({ environment_id: id }) => id === api.a.environmentId));
    expect(ofWorkspace.length).toBeGreaterThan(0);
    expect(ids(await call('GET', `${path}?environment_id=${api.b.environmentId}`))).toEqual([]);
  });

  test('has every credential in force and fills the rest with the newest of the others', async () => {
    const { accountId, environmentId } = api.b;
    const insert = (when: string) =>
      sql`
      insert into api_credentials (account_id, environment_id, kind, name, secret_hash, secret_hint, revoked_at, expires_at)
      select ${accountId}, ${environmentId}, 'app', ${when}, sha256((${when} || n)::bytea), 'hint',
             case when ${when} = 'revoked' then now() end,
             case when ${when} = 'expired' then ${new Date(api.clock.nowMs)}::timestamptz end
        from generate_series(1, 3) n`.execute(api.database);
    for (const when of ['in force', 'expired', 'revoked']) await insert(when);
    const namesOf = async (limit: number) =>
      (await listCredentials(api.database, accountId, environmentId, api.clock.nowMs, limit)).map(
        ({ name }) => name,
      );
    const isOver = (name: string): boolean => name === 'expired' || name === 'revoked';
    const inForce = (await namesOf(100)).filter((name) => !isOver(name));
    expect(inForce.slice(-3)).toEqual(['in force', 'in force', 'in force']);
    expect(await namesOf(inForce.length + 4)).toEqual([
      ...inForce,
      'expired',
      ...Array<string>(3).fill('revoked'),
    ]);
  });

  test.each([
    ['x', 400, 'invalid_request'],
    ['1.5', 400, 'invalid_request'],
    ['0', 422, 'validation_failed'],
    ['-1', 422, 'validation_failed'],
    ['2147483648', 422, 'validation_failed'],
  ])('environment_id=%s is %i', async (value, status, code) => {
    const answer = await call('GET', `${path}?environment_id=${value}`);
    expect(expectProblem(answer, status, code).errors[0]?.source?.parameter).toBe('environment_id');
  });
});

describe('rotating and revoking', () => {
  test('a new secret takes the place of the old one', async () => {
    const made = (await create({ name: 'a', type: 'service_account' })).json();
    const account = `/v1/accounts/${api.a.accountId}`;
    expect((await call('GET', account, { key: made.secret })).statusCode).toBe(200);
    const rotated = await call('POST', `${path}/${made.api_credential.id}/rotate`);
    expect(rotated.json().api_credential.id).toBe(made.api_credential.id);
    api.clock.nowMs += 1000;
    expectProblem(await call('GET', account, { key: made.secret }), 401, 'unauthorized');
    expect((await call('GET', account, { key: rotated.json().secret })).statusCode).toBe(200);
  });

  test('a Track key keeps its site id', async () => {
    const given = { name: 'a', type: 'tracking', environment_id: api.a.environmentId };
    const made = (await create(given)).json().api_credential;
    const rotated = (await call('POST', `${path}/${made.id}/rotate`)).json().api_credential;
    expect(rotated.site_id).toBe(made.site_id);
    expect(rotated.site_id).toMatch(/^[0-9A-Za-z]{20}$/);
  });

  test('a revoked one is out of force within a second, stays in the list, and is not rotated', async () => {
    const made = (await create({ name: 'a', type: 'service_account' })).json();
    const { id } = made.api_credential;
    const account = `/v1/accounts/${api.a.accountId}`;
    expect((await call('GET', account, { key: made.secret })).statusCode).toBe(200);
    // Its use is recorded beside the call, which does not wait for it. Written between the answers below, it would differ.
    await expect
      .poll(async () => (await call('GET', `${path}/${id}`)).json().api_credential.last_used_at, {
        timeout: 20_000,
      })
      .toBe(new Date(api.clock.nowMs).toISOString());
    const revoked = await call('DELETE', `${path}/${id}`);
    const revokedAt = new Date(api.clock.nowMs).toISOString();
    expect(revoked.json().api_credential.revoked_at).toBe(revokedAt);
    api.clock.nowMs += 1000;
    expectProblem(await call('GET', account, { key: made.secret }), 401, 'unauthorized');
    expect((await call('DELETE', `${path}/${id}`)).json()).toEqual(revoked.json());
    expect((await call('GET', `${path}/${id}`)).json()).toEqual(revoked.json());
    expectProblem(await call('POST', `${path}/${id}/rotate`), 409, 'conflict');
  });

  test('each change is one entry of the audit log, without secrets', async () => {
    const made = (await create({ name: 'audited', type: 'service_account' })).json();
    const { id } = made.api_credential;
    await call('POST', `${path}/${id}/rotate`);
    await call('DELETE', `${path}/${id}`);
    await call('DELETE', `${path}/${id}`);
    const { rows } = await sql<{ action: string; attributes: string[]; changes: object[] }>`
      select action, changed_attributes as attributes, changes from audit_logs
       where account_id = ${api.a.accountId} and object_type = 'api_credential' and object_id = ${String(id)}
       order by audit_log_id`.execute(api.database);
    expect(rows.map(({ action }) => action)).toEqual(['created', 'updated', 'updated']);
    expect(rows[1]?.attributes.toSorted()).toEqual(['secret', 'token_hint']);
    expect(rows[1]?.changes).toContainEqual({
      attribute: 'secret',
      from: '[redacted]',
      to: '[redacted]',
      redacted: true,
    });
    expect(rows[2]?.attributes).toEqual(['revoked_at']);
  });
});
