/** Changes of an account by its owners. Each has its audit entry. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTestReceipt, insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
let path: string;
beforeAll(async () => {
  api = await startApi();
  path = `/v1/accounts/${api.a.accountId}`;
  await sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    values (${api.a.accountId}, 501, 'ada@example.com', 'Ada', 'L', 'account_admin', 'active'),
           (${api.a.accountId}, 502, 'bob@example.com', 'Bob', 'M', 'member', 'deactivated'),
           (${api.b.accountId}, 503, 'eve@example.com', 'Eve', 'N', 'account_admin', 'active')`.execute(
    api.database,
  );
  await sql`
    insert into memberships (account_id, user_id, environment_id)
    values (${api.a.accountId}, 501, ${api.a.environmentId})`.execute(api.database);
  await insertToken(api.database, api.a.accountId, 'sa_member', { role: 'member' });
  await insertToken(api.database, api.a.accountId, 'sa_billing', { role: 'billing_admin' });
  await insertToken(api.database, api.a.accountId, 'sa_read_only', { isReadOnly: true });
});
afterAll(() => api.close());

const call = (
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  options: Parameters<ApiUnderTest['call']>[2] = {},
) => api.call(method, url, { key: api.a.token, ...options });

/** The account's audit entries, oldest first. */
async function auditOf() {
  const { rows } = await sql<{
    action: string;
    objectType: string;
    serviceAccountId: number;
    changes: { attribute: string; from: unknown; to: unknown }[];
  }>`
    select action, object_type as "objectType", service_account_id as "serviceAccountId", changes
      from audit_logs where account_id = ${api.a.accountId} order by audit_log_id`.execute(
    api.database,
  );
  return rows;
}

const ADDRESS = {
  company: null,
  line1: '1 Main Street',
  line2: null,
  city: 'Springfield',
  state: 'IL',
  postal_code: '62701',
  country: 'US',
  tax_id: null,
};

describe('settings', () => {
  test('a change sets the given fields, keeps the others, and writes one entry to the audit log', async () => {
    const before = (await call('GET', path)).json().account;
    const entryCount = (await auditOf()).length;
    const answer = await call('PUT', path, {
      body: { account: { name: 'Acme', website: 'https://acme.example', owner_user_id: 501 } },
    });
    expect(answer.statusCode).toBe(200);
    const { account } = answer.json();
    expect(account).toEqual({
      ...before,
      name: 'Acme',
      website: 'https://acme.example',
      owner_user_id: 501,
      updated_at: new Date(api.clock.nowMs).toISOString(),
    });
    expect((await call('GET', path)).json().account).toEqual(account);
    const entries = (await auditOf()).slice(entryCount);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({
      action: 'updated',
      objectType: 'account',
      serviceAccountId: expect.any(Number),
      changes: expect.arrayContaining([
        { attribute: 'name', from: before.name, to: 'Acme', redacted: false },
      ]),
    });
  });

  test('null takes the website and the billing address away', async () => {
    await call('PUT', path, {
      body: { account: { website: 'https://a.example', billing_email: ' Pay@Acme.EXAMPLE ' } },
    });
    expect((await call('GET', path)).json().account.billing_email).toBe('Pay@acme.example');
    const answer = await call('PUT', path, {
      body: { account: { website: null, billing_email: null } },
    });
    expect(answer.json().account).toMatchObject({ website: null, billing_email: null });
  });

  test('a refused owner leaves the account unchanged', async () => {
    for (const owner of [502, 503, 2_000_000_000]) {
      const answer = await call('PUT', path, {
        body: { account: { name: 'never', owner_user_id: owner } },
      });
      const { errors } = expectProblem(answer, 422, 'validation_failed');
      expect(errors[0]?.source?.pointer).toBe('/account/owner_user_id');
    }
    expect((await call('GET', path)).json().account.name).not.toBe('never');
  });

  test.each([
    [{}, '/account'],
    [{ account: {} }, '/account'],
    [{ account: { name: '' } }, '/account/name'],
    [{ account: { name: ' ' } }, '/account/name'],
    [{ account: { name: 'x'.repeat(101) } }, '/account/name'],
    [{ account: { name: 'a\r\nBcc: b@example.com' } }, '/account/name'],
    [{ account: { name: 1 } }, '/account/name'],
    [{ account: { timezone: 'Mars/Olympus' } }, '/account/timezone'],
    [{ account: { timezone: '+01:00' } }, '/account/timezone'],
    [{ account: { website: 'javascript:alert(1)' } }, '/account/website'],
    [{ account: { website: 'https://user:secret@a.example' } }, '/account/website'],
    [{ account: { billing_email: 'a@b.example\r\nBcc: c@d.example' } }, '/account/billing_email'],
    [{ account: { billing_email: 'nobody' } }, '/account/billing_email'],
    [{ account: { owner_user_id: 2_147_483_648 } }, '/account/owner_user_id'],
    [{ account: { owner_user_id: '501' } }, '/account/owner_user_id'],
    [{ account: { two_factor_required: true } }, '/account/two_factor_required'],
    [{ account: { plan: 'premium' } }, '/account/plan'],
    [{ account: { id: 7 } }, '/account/id'],
    [{ account: { name: 'a' }, name: 'b' }, '/name'],
  ])('%j is 422 and names the field', async (body, pointer) => {
    const answer = await call('PUT', path, { body });
    const { errors } = expectProblem(answer, 422, 'validation_failed');
    expect(errors.map(({ source }) => source?.pointer)).toContain(pointer);
  });
});

describe('the address', () => {
  test('is replaced whole', async () => {
    await call('POST', `${path}/address`, { body: { address: { ...ADDRESS, company: 'Acme' } } });
    const { company: _, ...rest } = ADDRESS;
    const answer = await call('POST', `${path}/address`, { body: { address: rest } });
    expect(answer.json().account.address).toEqual(ADDRESS);
  });

  test.each([
    [{ ...ADDRESS, country: 'us' }, '/address/country'],
    [{ ...ADDRESS, country: 'XX' }, '/address/country'],
    [{ ...ADDRESS, state: null }, '/address/state'],
    [{ ...ADDRESS, postal_code: null }, '/address/postal_code'],
    [{ ...ADDRESS, country: 'DE', state: null, postal_code: null }, '/address/postal_code'],
    [{ ...ADDRESS, line1: '' }, '/address/line1'],
    [{ ...ADDRESS, tax_id: { type: 'eu_vat' } }, '/address/tax_id/value'],
    [{ ...ADDRESS, amount: 1 }, '/address/amount'],
  ])('%j is 422 and names the field', async (address, pointer) => {
    const answer = await call('POST', `${path}/address`, { body: { address } });
    const { errors } = expectProblem(answer, 422, 'validation_failed');
    expect(errors.map(({ source }) => source?.pointer)).toContain(pointer);
  });

  test('needs no postal code in a country without postal codes', async () => {
    const address = { ...ADDRESS, country: 'HK', state: null, postal_code: null };
    expect((await call('POST', `${path}/address`, { body: { address } })).statusCode).toBe(200);
  });
});

describe('the two-factor requirement', () => {
  test('is switched on and off, and only a change is recorded', async () => {
    const entryCount = (await auditOf()).length;
    for (const [action, isRequired] of [
      ['enable', true],
      ['enable', true],
      ['disable', false],
      ['disable', false],
    ] as const) {
      const answer = await call('POST', `${path}/2fa_required/${action}`);
      expect({ status: answer.statusCode, body: answer.body }).toEqual({ status: 204, body: '' });
      expect((await call('GET', path)).json().account.two_factor_required).toBe(isRequired);
    }
    expect((await auditOf()).slice(entryCount)).toHaveLength(2);
  });

  test('an unknown action is 404 with the code unknown_action', async () => {
    for (const action of ['toggle', 'ENABLE', 'x'.repeat(99)])
      expectProblem(await call('POST', `${path}/2fa_required/${action}`), 404, 'unknown_action');
  });
});

describe('products', () => {
  test('one is activated once', async () => {
    const first = await call('POST', `${path}/activate_product`, {
      body: { product: 'pipelines' },
    });
    expect(first.json()).toEqual({
      product: {
        product: 'pipelines',
        status: 'active',
        activated_at: new Date(api.clock.nowMs).toISOString(),
      },
      activated: true,
    });
    api.clock.nowMs += 1000;
    const again = await call('POST', `${path}/activate_product`, {
      body: { product: 'pipelines' },
    });
    expect(again.json()).toEqual({ ...first.json(), activated: false });
    expect((await call('GET', path)).json().account.products).toEqual([first.json().product]);
  });

  test('an unknown one is 422', async () => {
    const answer = await call('POST', `${path}/activate_product`, { body: { product: 'x' } });
    expect(expectProblem(answer, 422, 'validation_failed').errors[0]?.field).toBe('product');
  });
});

test('the list has exactly the users of the account, by id, with their roles and workspaces', async () => {
  const answer = await call('GET', `${path}/all_users`);
  expect(answer.json()).toMatchObject({
    users: [
      { id: 501, role: 'account_admin', environment_ids: [api.a.environmentId], sso: false },
      { id: 502, role: 'member', status: 'deactivated', environment_ids: [] },
    ],
    meta: { total: 2 },
  });
});

describe('a receipt', () => {
  test('is HTML with escaped texts and a policy that allows no script', async () => {
    await insertTestReceipt(api.database, api.a.accountId, 'rcpt_1');
    const answer = await call('GET', '/settings/receipts/rcpt_1', { key: 'sa_billing' });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.body).not.toMatch(/<(script|img|b)\b/);
    expect(answer.body).toContain('&lt;script&gt;alert(&quot;billed&quot;)&lt;/script&gt;');
    expect(answer.body).toContain('$123.45');
  });

  test('of another account is answered like a receipt that does not exist', async () => {
    await insertTestReceipt(api.database, api.b.accountId, 'rcpt_of_b');
    const ofB = await call('GET', '/settings/receipts/rcpt_of_b');
    const ofNobody = await call('GET', '/settings/receipts/rcpt_2');
    expect(expectProblem(ofB, 404, 'not_found').message).toBe(
      expectProblem(ofNobody, 404, 'not_found').message,
    );
  });
});

// Security: the table of roles and rights.
describe('roles', () => {
  const changes = () =>
    [
      ['PUT', path, { account: { name: 'A' } }],
      ['POST', `${path}/address`, { address: ADDRESS }],
      ['POST', `${path}/2fa_required/enable`, undefined],
      ['POST', `${path}/activate_product`, { product: 'journeys' }],
      ['POST', `${path}/api_credentials`, { name: 'a', type: 'service_account' }],
      ['POST', `${path}/api_credentials/${api.a.spareCredentialId}/rotate`, undefined],
      ['DELETE', `${path}/api_credentials/${api.a.spareCredentialId}`, undefined],
    ] as const;

  test('only an account admin changes an account, and not with a read-only token', async () => {
    for (const [method, url, body] of changes()) {
      for (const key of ['sa_member', 'sa_billing']) {
        expectProblem(await call(method, url, { key, ...(body && { body }) }), 403, 'forbidden');
      }
      const readOnly = await call(method, url, { key: 'sa_read_only', ...(body && { body }) });
      expectProblem(readOnly, 403, 'read_only');
    }
  });

  test('users and credentials are shown to account admins, a receipt to billing admins', async () => {
    for (const [url, lowest] of [
      [path, 'sa_member'],
      ['/settings/receipts/rcpt_1', 'sa_billing'],
      [`${path}/all_users`, 'sa_read_only'],
      [`${path}/api_credentials`, 'sa_read_only'],
      [`${path}/api_credentials/${api.a.spareCredentialId}`, 'sa_read_only'],
    ] as const) {
      const keys = ['sa_member', 'sa_billing', 'sa_read_only'];
      for (const key of keys) {
        const isEnough = keys.indexOf(key) >= keys.indexOf(lowest);
        expect({ url, key, status: (await call('GET', url, { key })).statusCode }).toEqual({
          url,
          key,
          status: isEnough ? 200 : 403,
        });
      }
    }
  });
});
