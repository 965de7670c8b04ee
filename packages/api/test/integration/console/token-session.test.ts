/** Security: a session that a pasted token opens reaches as far as the token, and ends with it. */
import { seedDemoWorkspace, DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi } from '../support/api-under-test.ts';
import { cookieOf, ORIGIN, startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const credentialsOf = () => `/v1/accounts/${world.api.a.accountId}/api_credentials`;

/** A new token of account A. */
async function makeToken(given: object = {}): Promise<{ id: number; secret: string }> {
  const answer = await world.api.call('POST', credentialsOf(), {
    key: world.api.a.token,
    body: { type: 'service_account', name: 'Laptop', role: 'account_admin', ...given },
  });
  expect(answer.statusCode).toBe(200);
  return { id: answer.json().api_credential.id, secret: answer.json().secret };
}

const paste = (token: string, ip?: string) =>
  world.call('POST', '/console/session', { body: { token }, ...(ip !== undefined && { ip }) });

async function signIn(token: string): Promise<string> {
  const answer = await paste(token);
  expect(answer.statusCode).toBe(204);
  return cookieOf(answer);
}

const me = (cookie: string, ip?: string) =>
  world.call('GET', '/console/me', { cookie, ...(ip !== undefined && { ip }) });

test('a pasted token opens its account and all its workspaces, under its name, and is kept nowhere', async () => {
  const { api } = world;
  const { secret } = await makeToken();
  const cookie = await signIn(secret);
  expect((await me(cookie)).json()).toMatchObject({
    user: { id: null, email: 'Laptop', role: 'account_admin' },
    account: { id: api.a.accountId },
    session: { way: 'token' },
    workspaces: [{ id: api.a.environmentId }],
  });
  const made = await world.call('POST', '/v1/reporting_webhooks', {
    cookie,
    workspace: api.a.environmentId,
    body: { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] },
  });
  expect(made.statusCode).toBe(200);
  const sessions = await sql<{ row: string }>`
    select s::text as row from console_sessions s where way = 'token'`.execute(api.database);
  expect(sessions.rows).toHaveLength(1);
  // As text, and as the bytes that it would be in a column of bytes.
  for (const kept of [secret, Buffer.from(secret).toString('hex')])
    expect(sessions.rows[0]?.row).not.toContain(kept);
  expect((await world.call('DELETE', '/console/session', { cookie })).statusCode).toBe(204);
  expectProblem(await me(cookie), 401, 'unauthorized');

  const { rows } = await sql<{ log: string }>`
    select (select string_agg(concat_ws(' ', object_type, action, actor_type, user_id), ',' order by audit_log_id desc)
              from audit_logs where account_id = ${api.a.accountId}) as log`.execute(api.database);
  expect(rows[0]?.log.split(',').slice(0, 3)).toEqual([
    'console_session deleted service_account',
    'reporting_webhook created service_account',
    'console_session created service_account',
  ]);
});

test('the session ends when the token is rotated, revoked, or has expired', async () => {
  const { api } = world;
  const rotate = (id: number) =>
    api.call('POST', `${credentialsOf()}/${id}/rotate`, { key: api.a.token });
  const revoke = (id: number) =>
    api.call('DELETE', `${credentialsOf()}/${id}`, { key: api.a.token });
  const expire = (id: number) =>
    sql`update api_credentials set expires_at = now() where credential_id = ${id}`.execute(
      api.database,
    );
  for (const end of [rotate, revoke, expire]) {
    const { id, secret } = await makeToken();
    const cookie = await signIn(secret);
    expect((await me(cookie)).statusCode).toBe(200);
    await end(id);
    expectProblem(await me(cookie), 401, 'unauthorized');
    expectProblem(await paste(secret), 401, 'unauthorized');
  }
});

test('its role, its addresses and that it may only read hold in the session too', async () => {
  const { api } = world;
  const account = `/v1/accounts/${api.a.accountId}`;
  const member = await signIn((await makeToken({ role: 'member' })).secret);
  expectProblem(await world.call('GET', credentialsOf(), { cookie: member }), 403, 'forbidden');

  const reader = await signIn((await makeToken({ read_only: true })).secret);
  const write = { cookie: reader, body: { account: { website: 'https://x.example' } } };
  expectProblem(await world.call('PUT', account, write), 403, 'read_only');
  const body = { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] };
  const workspace = api.a.environmentId;
  expectProblem(
    await world.call('POST', '/v1/reporting_webhooks', { cookie: reader, workspace, body }),
    403,
    'read_only',
  );
  const filter = { object_attribute: { field: 'plan', operator: 'eq', value: 'premium' } };
  const found = await world.call('POST', '/v1/objects', {
    cookie: reader,
    workspace,
    body: { object_type_id: 1, filter },
  });
  expect(found.statusCode).toBe(200);

  const { secret } = await makeToken({ ip_allowlist: ['203.0.113.0/24'] });
  expectProblem(await paste(secret, '198.51.100.1'), 403, 'ip_not_allowed');
  const answer = await paste(secret, '203.0.113.9');
  expect(answer.statusCode).toBe(204);
  expect((await me(cookieOf(answer), '203.0.113.10')).statusCode).toBe(200);
  const { counts } = api.refusedCredentials;
  const noted = [counts.get('ip_not_allowed') ?? 0, counts.get('missing')] as const;
  expectProblem(await me(cookieOf(answer), '198.51.100.1'), 403, 'ip_not_allowed');
  expect([counts.get('ip_not_allowed'), counts.get('missing')]).toEqual([noted[0] + 1, noted[1]]);
});

test('a session makes no credential that reaches further than its token', async () => {
  const soon = new Date(Date.now() + 86_400_000).toISOString();
  const cookie = await signIn((await makeToken({ expires_at: soon })).secret);
  const body = { type: 'service_account', name: 'For ever', role: 'account_admin' };
  expectProblem(await world.call('POST', credentialsOf(), { cookie, body }), 403, 'forbidden');
});

test('an invalid token opens no session, and guesses from one address are limited', async () => {
  for (const token of ['nothing', world.api.a.key, 'sa_live_'.padEnd(57, 'x')])
    expectProblem(await paste(token), 401, 'unauthorized');
  expectProblem(await paste(''), 400, 'invalid_request');

  const api = await startApi({}, { refusedPerMinuteMax: 3 });
  const guess = () =>
    api.app.inject({
      method: 'POST',
      url: '/console/session',
      headers: { origin: ORIGIN },
      payload: { token: 'wrong' },
    });
  const answers = [await guess(), await guess(), await guess(), await guess()];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 401, 401, 429]);
  await api.close();
});

test('the tokens of the demo, which everybody knows, open no session', async () => {
  const { database } = world.api;
  await seedDemoWorkspace(database);
  const tokens = DEMO_SECRETS.filter((each) => each.startsWith('sa_'));
  await sql`
    update api_credentials set revoked_at = null
     where secret_hash = any(${tokens.map(hashSecret)}::bytea[])`.execute(database);
  expect(tokens.length).toBeGreaterThan(0);
  for (const token of tokens) {
    const answer = await paste(token);
    expectProblem(answer, 403, 'forbidden');
    expect(answer.headers['set-cookie']).toBeUndefined();
  }
});

test('a token has no second factor of its own', async () => {
  const cookie = await signIn((await makeToken()).secret);
  for (const [method, url] of [
    ['GET', '/console/second_factor'],
    ['POST', '/console/second_factor/setup'],
  ] as const)
    expectProblem(await world.call(method, url, { cookie }), 403, 'forbidden');
});

test('a token opens the workspaces only if its role can make keys of them', async () => {
  const workspace = world.api.a.environmentId;
  for (const [role, ids] of [
    ['member', []],
    ['billing_admin', []],
    ['account_admin', [workspace]],
  ] as const) {
    const cookie = await signIn((await makeToken({ role })).secret);
    const { workspaces } = (await me(cookie)).json();
    expect(workspaces.map(({ id }: { id: number }) => id)).toEqual(ids);
    const read = await world.call('GET', '/v1/workspaces', { cookie, workspace });
    if (role === 'account_admin') expect(read.statusCode).toBe(200);
    else expectProblem(read, 403, 'environment_not_owned');
  }
});

test('its sessions count among the calls of the token, and are a use of it', async () => {
  const api = await startApi({ ratePerMinute: 5 });
  const headers = { origin: ORIGIN, 'sec-fetch-site': 'same-origin' };
  const bearer = { authorization: `Bearer ${api.a.token}` };
  const url = `/v1/accounts/${api.a.accountId}`;
  const open = () =>
    api.app.inject({
      method: 'POST',
      url: '/console/session',
      headers,
      payload: { token: api.a.token },
    });
  const opened = [await open(), await open()];
  expect(opened.map(({ statusCode }) => statusCode)).toEqual([204, 204]);
  /** It is written beside the answer. */
  const waitForUse = () =>
    vi.waitFor(async () => {
      const { rows } = await sql`
        update api_credentials set last_used_ip = null
         where secret_hash = ${hashSecret(api.a.token)} and last_used_ip = '127.0.0.1'
        returning 1`.execute(api.database);
      expect(rows).toHaveLength(1);
    }, 20_000);
  await waitForUse();
  const [one, other] = opened.map((each) => ({ ...headers, cookie: cookieOf(each) }));
  const workspace = { 'x-sluice-workspace': String(api.a.environmentId) };
  const calls = [
    { url: '/v1/workspaces', headers: { ...one, ...workspace } },
    { url: '/console/me', headers: { ...other } },
    { url, headers: bearer },
    { url: '/console/me', headers: { ...one } },
    { url: '/v1/workspaces', headers: { ...other, ...workspace } },
    { url, headers: bearer },
    { url, headers: { ...one } },
  ];
  const statuses = [];
  for (const each of calls) {
    statuses.push((await api.app.inject(each)).statusCode);
    if (statuses.length < 3) await waitForUse();
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429]);
  expectProblem(await open(), 429, 'rate_limited');
  await api.close();
});

test('the 21st session of a token ends its oldest session, and the audit log records the end', async () => {
  const { id, secret } = await makeToken();
  const cookies: string[] = [];
  for (let n = 0; n < 20; n++) cookies.push(await signIn(secret));
  expect((await me(cookies[0]!)).statusCode).toBe(200);
  cookies.push(await signIn(secret));
  expectProblem(await me(cookies[0]!), 401, 'unauthorized');
  for (const cookie of [cookies[1]!, cookies[20]!]) expect((await me(cookie)).statusCode).toBe(200);
  // At the same time too, of which each sees the others.
  await Promise.all(Array.from({ length: 5 }, () => signIn(secret)));
  const { rows } = await sql<{ open: number; ended: number }>`
    select (select count(*)::int from console_sessions where credential_id = ${id}) as open,
           (select count(*)::int from audit_logs where credential_id = ${id}
               and object_type = 'console_session' and action = 'deleted') as ended`.execute(
    world.api.database,
  );
  expect(rows).toEqual([{ open: 20, ended: 6 }]);
});

test('a session that a token opened leaves the trace of the token on another account', async () => {
  const { api } = world;
  const cookie = await signIn((await makeToken()).secret);
  const countBefore = api.refusedCredentials.counts.get('other_account') ?? 0;
  const ask = () => world.call('GET', `/v1/accounts/${api.b.accountId}`, { cookie });
  await vi.waitFor(
    async () => {
      expectProblem(await ask(), 404, 'not_found');
      const { rows } = await sql`
        select account_id::int as "accountId" from audit_logs where object_type = 'credential_misuse'`.execute(
        api.database,
      );
      expect(rows).toEqual([{ accountId: api.a.accountId }]);
    },
    { timeout: 60_000, interval: 500 },
  );
  expect(api.refusedCredentials.counts.get('other_account')).toBeGreaterThan(countBefore);
});
