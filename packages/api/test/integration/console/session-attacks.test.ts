/** Security: the rights of a session in the console, its users, its origins, and its duration. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { OPENERS } from '../support/access-table.ts';
import { listOperations, fillPath, WORDS_IN_PATHS } from '../support/every-operation.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';
import { insertOwned, ownedBody } from '../support/tenant-world.ts';

let world: ConsoleWorld;
let owned: Readonly<Record<string, string>>;
beforeAll(async () => {
  world = await startConsole();
  owned = await insertOwned(world.api, world.api.b, 'belongs-to-b');
});
afterAll(() => world.close());

const signInTo = async (
  tenant: 'a' | 'b',
  role: 'member' | 'billing_admin' | 'account_admin' = 'account_admin',
) => {
  const user = await world.insertUser(world.api[tenant], role);
  return { ...user, cookie: await world.signIn(user.email) };
};

test('a page of another origin cannot use, start or end a session', async () => {
  const { cookie } = await signInTo('a');
  const foreign = [
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    // Another port of this machine is the same site, and sends the cookie.
    { 'sec-fetch-site': 'same-site', origin: 'http://localhost:9999' },
    { 'sec-fetch-site': undefined, origin: 'http://localhost:9999' },
    { 'sec-fetch-site': undefined, origin: 'null' },
    { 'sec-fetch-site': undefined, origin: undefined },
    // Typed into the address line: no page writes so.
    { 'sec-fetch-site': 'none', origin: undefined },
  ];
  const account = `/v1/accounts/${world.api.a.accountId}`;
  const writes = [
    ['PUT', account, { account: { name: 'Taken' } }],
    ['POST', '/v1/reporting_webhooks', { endpoint: 'https://evil.example' }],
    ['POST', '/console/session', { demo: true }],
    ['POST', '/console/session/code', { email: 'a@example.com' }],
    ['DELETE', '/console/session', undefined],
    ['POST', '/console/session', { token: world.api.a.token }],
    ['POST', '/console/session/second_factor', { code: '000000' }],
    ['POST', '/console/second_factor/setup', undefined],
    ['DELETE', '/console/second_factor', { code: '000000' }],
    ['POST', `${account}/users`, { email: 'a@evil.example', role: 'account_admin' }],
    ['DELETE', `${account}/users/1/second_factor`, undefined],
  ] as const;
  for (const headers of foreign) {
    for (const [method, url, body] of writes) {
      const options = { cookie, workspace: world.api.a.environmentId, headers };
      const answer = await world.call(method, url, { ...options, body });
      expectProblem(answer, 403, 'forbidden');
    }
  }
  for (const headers of foreign.slice(0, 2))
    expectProblem(await world.call('GET', account, { cookie, headers }), 403, 'forbidden');
  expect((await world.call('GET', account, { cookie })).statusCode).toBe(200);
});

test('a content type that a form can send is refused', async () => {
  const { cookie } = await signInTo('a');
  const answer = await world.call('PUT', `/v1/accounts/${world.api.a.accountId}`, {
    cookie,
    body: { account: { name: 'Taken' } },
    headers: { 'content-type': 'text/plain' },
  });
  expectProblem(answer, 415, 'unsupported_media_type');
});

// Session fixation.
test('a session id that was set before a sign-in is never the one after it', async () => {
  const { give, enrolled } = secondFactorsOf(() => world);
  const planted = `sluice-80=${world.api.a.accountId}.${'A'.repeat(43)}`;
  const victim = await world.insertUser(world.api.a, 'member');
  const ofTwo = await enrolled();
  const [recovery = ''] = ofTwo.codes;
  const half = await world.signIn(ofTwo.email);
  const byCode = async (before: string) =>
    world.giveCode(victim.email, await world.mailedCode(victim.email), before);
  const byToken = (cookie: string) =>
    world.call('POST', '/console/session', { cookie, body: { token: world.api.a.token } });
  const signIns = [
    [(await signInTo('b')).cookie, byCode],
    [planted, byCode],
    [(await signInTo('b')).cookie, byToken],
    [planted, byToken],
    [half, (before: string) => give(before, { recovery_code: recovery })],
  ] as const;
  for (const [before, signIn] of signIns) {
    const answer = await signIn(before);
    expect(answer.statusCode).toBe(204);
    const after = cookieOf(answer);
    expect(after).not.toBe(before);
    expect((await world.call('GET', '/console/me', { cookie: after })).statusCode).toBe(200);
    expectProblem(await world.call('GET', '/console/me', { cookie: before }), 401, 'unauthorized');
  }
});

test('a call has one caller: a cookie beside a token is refused', async () => {
  const { cookie } = await signInTo('a');
  for (const [url, token] of [
    [`/v1/accounts/${world.api.a.accountId}`, world.api.a.token],
    ['/v1/workspaces', world.api.a.key],
  ] as const) {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await world.call('GET', url, { cookie, headers });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe('Authorization');
  }
});

test('two session cookies with the same name are both refused', async () => {
  const { cookie } = await signInTo('a');
  const answer = await world.call('GET', '/console/me', { cookie: `${cookie}; ${cookie}` });
  expectProblem(answer, 401, 'unauthorized');
});

test('the cookie is unreadable to scripts, for our pages alone, and by HTTPS for this host alone', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const answer = await world.giveCode(email, await world.mailedCode(email));
  const ofSession = [answer.headers['set-cookie'] ?? []].flat().at(-1);
  expect(ofSession).toMatch(
    /^sluice-80=\d+\.[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
  );
  // The stored value does not open a session.
  const { rows } = await sql<{ kept: string }>`
    select string_agg(s::text, ' ') as kept from console_sessions s`.execute(world.api.database);
  expect(rows[0]?.kept).not.toContain(cookieOf(answer).split('.')[1]);
});

test('by HTTP the console opens on this machine alone', async () => {
  for (const host of ['sluice.example', 'localhost.evil.example:80', '10.0.0.1:80']) {
    const headers = { host, origin: `http://${host}` };
    for (const [method, url, body] of [
      ['GET', '/console/session', undefined],
      ['POST', '/console/session', { demo: true }],
    ] as const) {
      const answer = await world.call(method, url, { headers, body });
      expectProblem(answer, 403, 'forbidden');
      expect(answer.json().detail).toContain('HTTPS');
    }
  }
});

test('a session is over when it is ended, unused for 12 hours, 7 days old, or its user or account is closed', async () => {
  const { database } = world.api;
  const ends: Record<string, (cookie: string, userId: number) => Promise<unknown>> = {
    ended: (cookie) => world.call('DELETE', '/console/session', { cookie }),
    idle: (_, userId) =>
      sql`update console_sessions set last_seen_at = now() - interval '12 hours 1 second'
           where user_id = ${userId}`.execute(database),
    old: (_, userId) =>
      sql`update console_sessions set ends_at = now() where user_id = ${userId}`.execute(database),
    deactivated: (_, userId) =>
      sql`update users set status = 'deactivated' where user_id = ${userId}`.execute(database),
    'of a closed account': () =>
      sql`update accounts set status = 'closed' where account_id = ${world.api.b.accountId}`.execute(
        database,
      ),
  };
  for (const [name, end] of Object.entries(ends)) {
    const tenant = name === 'of a closed account' ? 'b' : 'a';
    const { cookie, userId } = await signInTo(tenant);
    const { environmentId, accountId } = world.api[tenant];
    const statuses = async () => [
      (await world.call('GET', '/console/me', { cookie })).statusCode,
      (await world.call('GET', `/v1/accounts/${accountId}`, { cookie })).statusCode,
      (await world.call('GET', '/v1/workspaces', { cookie, workspace: environmentId })).statusCode,
    ];
    expect(await statuses(), name).toEqual([200, 200, 200]);
    await end(cookie, userId);
    expect(await statuses(), name).toEqual([401, 401, 401]);
    expect((await world.call('GET', '/console/session', { cookie })).json()).toMatchObject({
      is_signed_in: false,
    });
  }
  await sql`update accounts set status = 'active' where account_id = ${world.api.b.accountId}`.execute(
    database,
  );
});

test('use keeps a session open, and a session that is over stays so', async () => {
  const { database } = world.api;
  const { cookie, userId } = await signInTo('a');
  const age = (hours: number) =>
    sql`update console_sessions set last_seen_at = last_seen_at - make_interval(hours => ${hours})
         where user_id = ${userId}`.execute(database);
  for (let count = 0; count < 3; count++) {
    await age(11);
    expect((await world.call('GET', '/console/me', { cookie })).statusCode).toBe(200);
  }
  await age(13);
  for (let count = 0; count < 2; count++)
    expect((await world.call('GET', '/console/me', { cookie })).statusCode).toBe(401);
});

test('a page that reads by itself does not keep a session open', async () => {
  const { database } = world.api;
  const { cookie, userId } = await signInTo('a');
  const headers = { 'x-sluice-unattended': '1' };
  const statuses = [];
  for (let count = 0; count < 2; count++) {
    await sql`update console_sessions set last_seen_at = last_seen_at - interval '7 hours'
               where user_id = ${userId}`.execute(database);
    statuses.push((await world.call('GET', '/console/me', { cookie, headers })).statusCode);
  }
  expect(statuses).toEqual([200, 401]);
});

test('users list and end their own sessions, and no others', async () => {
  const one = await signInTo('a');
  const second = await world.signIn(one.email);
  const other = await signInTo('a');
  const list = async (cookie: string) =>
    (await world.call('GET', '/console/sessions', { cookie })).json().sessions as {
      id: number;
      is_current: boolean;
    }[];
  const listed = await list(second);
  expect(listed.map((each) => each.is_current)).toEqual([true, false]);
  const [{ id: ofOther } = { id: 0 }] = await list(other.cookie);
  const end = (id: number) => world.call('DELETE', `/console/sessions/${id}`, { cookie: second });
  expectProblem(await end(ofOther), 404, 'not_found');
  expect((await end(listed[1]!.id)).statusCode).toBe(204);
  expect((await world.call('GET', '/console/me', { cookie: one.cookie })).statusCode).toBe(401);
  expect((await world.call('GET', '/console/me', { cookie: other.cookie })).statusCode).toBe(200);
});

test('a token has no sessions to list', async () => {
  const headers = { authorization: `Bearer ${world.api.a.token}` };
  for (const url of ['/console/me', '/console/sessions'])
    expectProblem(await world.call('GET', url, { headers }), 403, 'forbidden');
});

test('a session of one account cannot reach another account, by any path or workspace', async () => {
  const { api } = world;
  const { cookie } = await signInTo('a');
  const wrong: object[] = [];
  let count = 0;
  for (const operation of listOperations(api)) {
    if (operation.opensWith === 'nothing' || operation.path.includes('partner_application'))
      continue;
    if (operation.path === '/v1/vendor_events') continue;
    const ofWorkspace = operation.opensWith === 'app_key';
    if (!ofWorkspace && !operation.pathParameters.includes('account_id')) continue;
    count++;
    const url = fillPath(operation, (name) => WORDS_IN_PATHS[name] ?? owned[name] ?? '1');
    const answer = await world.call(operation.method, url, {
      cookie,
      ...(ofWorkspace && { workspace: api.b.environmentId }),
      ...(operation.takesBody && { body: ownedBody(operation, 'belongs-to-b') }),
    });
    if (answer.statusCode !== (ofWorkspace ? 403 : 404))
      wrong.push({ ...operation, status: answer.statusCode });
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(80);
});

test('a workspace is named, and by its number alone', async () => {
  const { cookie } = await signInTo('a');
  const ask = (headers: Record<string, string>) =>
    world.call('GET', '/v1/workspaces', { cookie, headers });
  const answer = await ask({});
  expectProblem(answer, 400, 'invalid_request');
  expect(answer.json().errors[0].field).toBe('X-Sluice-Workspace');
  const own = String(world.api.a.environmentId);
  for (const text of ['', '0', `0${own}`, `${own}.0`, ` ${own},${own}`, '2147483648', '1e0x'])
    expectProblem(await ask({ 'x-sluice-workspace': text }), 403, 'environment_not_owned');
});

test('a member reads a workspace and sends again; all else in it needs an account_admin', async () => {
  const { api } = world;
  const member = await signInTo('a', 'member');
  const admin = await signInTo('a');
  const made = await world.call('POST', '/v1/reporting_webhooks', {
    cookie: admin.cookie,
    workspace: api.a.environmentId,
    body: { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] },
  });
  const id = made.json().id as number;
  const allowed: string[] = [];
  for (const operation of listOperations(api)) {
    if (operation.opensWith !== 'app_key' || operation.path === '/v1/vendor_events') continue;
    const url = fillPath(operation, (name) => (name === 'webhook_id' ? String(id) : '1'));
    const answer = await world.call(operation.method, url, {
      cookie: member.cookie,
      workspace: api.a.environmentId,
      ...(operation.takesBody && { body: {} }),
    });
    if (answer.statusCode !== 403 && operation.method !== 'GET')
      allowed.push(`${operation.method} ${operation.path}`);
    if (operation.method === 'GET') expect([200, 404, 400, 422]).toContain(answer.statusCode);
  }
  expect(allowed.toSorted()).toEqual([
    'POST /v1/event_types/{name}/check',
    'POST /v1/objects',
    'POST /v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/resend',
    'POST /v1/reporting_webhooks/{webhook_id}/probe',
    'POST /v1/reporting_webhooks/{webhook_id}/test',
  ]);
});

test('a user of the account reaches exactly the routes of the role', async () => {
  const { accountId } = world.api.a;
  const admits = {
    [`/v1/accounts/${accountId}`]: ['member', 'billing_admin', 'account_admin'],
    [`/v1/accounts/${accountId}/billing/payment`]: ['billing_admin', 'account_admin'],
    [`/v1/accounts/${accountId}/all_users`]: ['account_admin'],
  };
  expect(OPENERS.get('GET /v1/accounts/:account_id/all_users')).toBe('account_admin');
  for (const role of ['member', 'billing_admin', 'account_admin'] as const) {
    const { cookie } = await signInTo('a', role);
    for (const [url, roles] of Object.entries(admits)) {
      const { statusCode } = await world.call('GET', url, { cookie });
      expect([url, role, statusCode === 403]).toEqual([url, role, !roles.includes(role)]);
    }
  }
});
