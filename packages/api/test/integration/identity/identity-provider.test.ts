/** The identity provider of an account: the rights to set it, its rules, and its visible fields. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { domainRecordText } from '../../../src/identity/domain-records.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { SECRET } from '../support/api-under-test.ts';
import { insertTenant, insertToken, type Tenant } from '../support/inserted-rows.ts';
import { type ProviderWorld, sessionOf, startProviderWorld } from '../support/provider-world.ts';

const OPERATOR_ID = 777;

let world: ProviderWorld;
beforeAll(async () => {
  world = await startProviderWorld({ operatorAccountIds: [OPERATOR_ID] });
});
afterAll(() => world.close());

let count = 0;
const newTenant = (): Promise<Tenant> =>
  insertTenant(world.api.database, `sets_provider_${++count}`);
const pathOf = ({ accountId }: Tenant) => `/v1/accounts/${accountId}/identity_provider`;
const read = (tenant: Tenant) => world.api.call('GET', pathOf(tenant), { key: tenant.token });
const SETTINGS = {
  issuer: 'https://login.example.com/realms/acme',
  client_id: 'sluice',
  client_secret: 'a secret that nobody sees again',
};
const proved = (tenant: Tenant, domain = `proved${++count}.example`): string => {
  world.prove(tenant, domain);
  return domain;
};

test('the provider is set, read without its secret, changed, removed, and each is in the audit log', async () => {
  const tenant = await newTenant();
  expect((await read(tenant)).json()).toEqual({
    identity_provider: null,
    redirect_uri: `http://localhost/sign-in/${tenant.accountId}`,
    domain_record: {
      name: '_sluice.<domain>',
      text: domainRecordText(SECRET, tenant.accountId),
    },
  });
  const domain = proved(tenant);
  const answer = await world.put(tenant, {
    ...SETTINGS,
    email_domains: [` ${domain.toUpperCase()}`],
  });
  expect(answer.statusCode).toBe(200);
  expect(answer.json().identity_provider).toMatchObject({
    issuer: SETTINGS.issuer,
    client_id: 'sluice',
    has_client_secret: true,
    email_domains: [domain],
    required: false,
    counts_as_two_factors: false,
    new_user_role: null,
    new_user_environment_ids: [],
    admin_signed_in_at: null,
  });
  const { client_secret: secret, ...others } = SETTINGS;
  const changed = await world.put(tenant, {
    ...others,
    email_domains: [domain],
    counts_as_two_factors: true,
  });
  expect(changed.json().identity_provider).toMatchObject({ counts_as_two_factors: true });
  const removal = await world.api.call('DELETE', pathOf(tenant), { key: tenant.token });
  expect(removal.statusCode).toBe(204);
  expectProblem(
    await world.api.call('DELETE', pathOf(tenant), { key: tenant.token }),
    404,
    'not_found',
  );

  const logs = await world.api.call('GET', `/v1/accounts/${tenant.accountId}/audit_logs`, {
    key: tenant.token,
  });
  const entries = logs
    .json()
    .audit_logs.filter((each: { object_type: string }) => each.object_type === 'identity_provider');
  expect(entries.map((each: { action: string }) => each.action)).toEqual([
    'deleted',
    'updated',
    'created',
  ]);
  const { rows } = await sql<{ text: string }>`
    select (select string_agg(l::text, ' ') from audit_logs l) || (select coalesce(string_agg(p::text, ' '), '')
       from identity_providers p) as text`.execute(world.api.database);
  for (const text of [logs.body, answer.body, changed.body, rows[0]?.text])
    expect(text).not.toContain(secret);
});

test('a domain is proved by a TXT record that names the account, and is one account’s', async () => {
  const [one, other] = [await newTenant(), await newTenant()];
  const refused = await world.put(one, { ...SETTINGS, email_domains: ['unproved.example'] });
  expectProblem(refused, 422, 'validation_failed');
  expect(refused.json().detail).toContain(
    `TXT record _sluice.unproved.example to ${domainRecordText(SECRET, one.accountId)}`,
  );
  // The record of another account is no proof.
  const domain = proved(other);
  expect((await world.put(one, { ...SETTINGS, email_domains: [domain] })).statusCode).toBe(422);
  expect((await world.put(other, { ...SETTINGS, email_domains: [domain] })).statusCode).toBe(200);
  world.prove(one, domain);
  expectProblem(await world.put(one, { ...SETTINGS, email_domains: [domain] }), 409, 'conflict');
  // A proved domain stays, even if the record changes.
  world.records.clear();
  expect((await world.put(other, { ...SETTINGS, email_domains: [domain] })).statusCode).toBe(200);
});

test('if no name server answers, the provider is refused, and the error names DNS', async () => {
  const silent = await startProviderWorld({
    readTextRecords: () => Promise.reject(new Error('no server answers')),
  });
  const answer = await silent.put(silent.api.a, { ...SETTINGS, email_domains: ['acme.example'] });
  expectProblem(answer, 409, 'conflict');
  expect(answer.json().detail).toContain('DNS');
  await silent.close();
});

test('the operator’s own account names its domains without a record', async () => {
  const tenant = await newTenant();
  await sql`
    insert into accounts (account_id, name) overriding system value values (${OPERATOR_ID}, 'Operator')`.execute(
    world.api.database,
  );
  const token = 'sa_sandbox_operator_of_all';
  await insertToken(world.api.database, OPERATOR_ID, token);
  const operator = { ...tenant, accountId: OPERATOR_ID, token };
  const body = { ...SETTINGS, email_domains: ['operator.example'] };
  expect((await world.put(operator, body)).statusCode).toBe(200);
});

test('another issuer or client needs its own secret, so that the one that there is goes nowhere else', async () => {
  const tenant = await newTenant();
  const body = { ...SETTINGS, email_domains: [proved(tenant)] };
  const { client_secret: _, ...without } = body;
  expectProblem(await world.put(tenant, without), 422, 'validation_failed');
  expect((await world.put(tenant, body)).statusCode).toBe(200);
  expect((await world.put(tenant, without)).statusCode).toBe(200);
  for (const other of [{ issuer: 'https://evil.test' }, { client_id: 'another' }])
    expectProblem(await world.put(tenant, { ...without, ...other }), 422, 'validation_failed');
});

test('a provider is required only after an account_admin has signed in by it, and keeps its issuer meanwhile', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const settings = world.settingsOf(provider, domain);
  const required = { ...settings, required: true };
  expectProblem(await world.put(tenant, required), 409, 'conflict');
  await world.insertUser(tenant, 'member', `member@${domain}`);
  await world.signInBy(provider, `member@${domain}`);
  expectProblem(await world.put(tenant, required), 409, 'conflict');
  await world.insertUser(tenant, 'account_admin', `admin@${domain}`);
  await world.signInBy(provider, `admin@${domain}`);
  expect((await world.put(tenant, required)).statusCode).toBe(200);
  const moved = { ...required, issuer: 'https://login.example.com' };
  expectProblem(await world.put(tenant, moved), 409, 'conflict');
  expect((await world.put(tenant, { ...moved, required: false })).statusCode).toBe(409);
  expect((await world.put(tenant, settings)).statusCode).toBe(200);
  expect((await world.put(tenant, { ...moved, required: false })).statusCode).toBe(200);
  // The other issuer has not been tried.
  expectProblem(await world.put(tenant, moved), 409, 'conflict');
});

test('the sessions of a provider end with it', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  await world.insertUser(tenant, 'account_admin', `ada@${domain}`);
  const cookie = sessionOf(await world.signInBy(provider, `ada@${domain}`));
  const me = () => world.call('GET', '/console/me', { cookie });
  expect((await me()).statusCode).toBe(200);
  const settings = world.settingsOf(provider, domain);
  await world.put(tenant, { ...settings, new_user_role: 'member' });
  expect((await me()).statusCode).toBe(200);
  const removal = await world.call('DELETE', pathOf(tenant), { cookie });
  expect(removal.statusCode).toBe(204);
  expect((await me()).statusCode).toBe(401);
});

test('a token with an expiry cannot set an identity provider', async () => {
  const tenant = await newTenant();
  const token = 'sa_sandbox_that_expires';
  await insertToken(world.api.database, tenant.accountId, token, {
    expiresAt: '2099-01-01T00:00:00Z',
  });
  const body = { ...SETTINGS, email_domains: [proved(tenant)] };
  expectProblem(await world.put({ ...tenant, token }, body), 403, 'forbidden');
});

test('of two accounts neither sees the other’s', async () => {
  const [one, other] = [await newTenant(), await newTenant()];
  await world.put(one, { ...SETTINGS, email_domains: [proved(one)] });
  for (const method of ['GET', 'PUT', 'DELETE'] as const) {
    const body = { ...SETTINGS, email_domains: ['a.example'] };
    const answer = await world.api.call(method, pathOf(one), {
      key: other.token,
      ...(method === 'PUT' && { body }),
    });
    expectProblem(answer, 404, 'not_found');
  }
});

test.each([
  [{ issuer: 'http://login.example.com' }, 'issuer'],
  [{ issuer: 'https://169.254.169.254' }, 'issuer'],
  [{ issuer: 'https://login.example.com/?tenant=1' }, 'issuer'],
  [{ issuer: 'https://login.example.com/#a' }, 'issuer'],
  [{ issuer: 'https://user:password@login.example.com' }, 'issuer'],
  [{ issuer: 'https://login.example.com/.well-known/openid-configuration' }, 'issuer'],
  [{ issuer: 'login.example.com' }, 'issuer'],
  [{ client_id: '' }, 'client_id'],
  [{ client_id: 'a\nb' }, 'client_id'],
  [{ client_secret: '\u00e9' }, 'client_secret'],
  [{ email_domains: [] }, 'email_domains'],
  [{ email_domains: ['acme'] }, 'email_domains.0'],
  [{ email_domains: ['*.example.com'] }, 'email_domains.0'],
  [{ email_domains: ['ada@example.com'] }, 'email_domains.0'],
  [{ new_user_role: 'account_admin' }, 'new_user_role'],
  [{ new_user_environment_ids: [999_999] }, 'new_user_environment_ids'],
  [{ unknown: true }, 'unknown'],
])('bad input names its field: %j', async (bad, field) => {
  const tenant = world.api.a;
  const domain = proved(tenant);
  const answer = await world.put(tenant, { ...SETTINGS, email_domains: [domain], ...bad });
  expect([400, 422]).toContain(answer.statusCode);
  expect(answer.json().errors[0].field).toBe(field);
});
