/** The programs that a user has let in: their list, their end, their audit log. */
import { takeCalls } from '@sluice/database/changes/call-counts';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { type ConsoleWorld, startConsole } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ConsoleWorld;
let count = 0;
let tenant: Tenant;
let admin: { email: string; userId: number };
let cookie: string;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());
beforeEach(async () => {
  tenant = await insertTenant(world.api.database, `programs_${++count}`);
  admin = await world.insertUser(tenant, 'account_admin');
  cookie = await world.signIn(admin.email);
});

interface Login {
  readonly device_code: string;
  readonly user_code: string;
}

interface Made {
  readonly token: string;
  readonly key: string;
}

const PROGRAM_IP = '198.51.100.77';

const callAsProgram = (path: string, body: object, ip = world.newIp()) =>
  world.api.app.inject({
    method: 'POST',
    url: `/v1/device_logins${path}`,
    remoteAddress: ip,
    headers: { 'content-type': 'application/json', host: 'localhost:80' },
    payload: JSON.stringify(body),
  });

/** Begun on this machine, and approved by the user of the session. */
async function approved(session = cookie, machine = 'ada-laptop'): Promise<Login> {
  const begun = await callAsProgram('', { client_name: machine });
  expect(begun.statusCode).toBe(200);
  const login: Login = begun.json();
  const decided = await world.call('POST', '/console/device/decision', {
    cookie: session,
    body: { code: login.user_code, approve: true, environment_id: tenant.environmentId },
  });
  expect(decided.statusCode).toBe(204);
  return login;
}

const collect = ({ device_code }: Login) => callAsProgram('/token', { device_code }, PROGRAM_IP);

async function letIn(session = cookie, machine?: string): Promise<Made> {
  const answer = await collect(await approved(session, machine));
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

/** The statuses of a call with the token and of a call with the key. */
async function statusesOf({ token, key }: Made): Promise<[number, number]> {
  // Both are remembered for a second.
  world.api.clock.nowMs += 2_000;
  const account = `/v1/accounts/${tenant.accountId}`;
  return [
    (await world.api.call('GET', account, { key: token })).statusCode,
    (await world.api.call('GET', '/v1/workspaces', { key })).statusCode,
  ];
}

const exchange = (token: string) =>
  world.api.app.inject({
    method: 'POST',
    url: '/v1/service_accounts/oauth/token',
    headers: { 'content-type': 'application/json' },
    payload: JSON.stringify({ grant_type: 'client_credentials', client_secret: token }),
  });
const listed = async (session = cookie): Promise<{ id: number; name: string }[]> =>
  (await world.call('GET', '/console/programs', { cookie: session })).json().programs;
const end = (id: number, session = cookie) =>
  world.call('DELETE', `/console/programs/${id}`, { cookie: session });
const usersPath = (rest: string) => `/v1/accounts/${tenant.accountId}/users/${rest}`;

test('a member sees the own programs and ends them, with the key', async () => {
  const member = await world.signIn((await world.insertUser(tenant, 'member')).email);
  const made = await letIn(member);
  expect(await listed(member)).toEqual([
    {
      id: expect.any(Number),
      name: 'sluice login on ada-laptop',
      environment_id: tenant.environmentId,
      created_at: expect.any(String),
      expires_at: expect.any(String),
      last_used_at: null,
      last_used_ip: null,
    },
  ]);
  expect(await statusesOf(made)).toEqual([200, 200]);
  const [program] = await listed(member);
  // Another user has no such program, not even an account_admin.
  expect(await listed()).toEqual([]);
  expectProblem(await end(program!.id), 404, 'not_found');
  expect(await statusesOf(made)).toEqual([200, 200]);

  expect((await end(program!.id, member)).statusCode).toBe(204);
  expect(await statusesOf(made)).toEqual([401, 401]);
  expect(await listed(member)).toEqual([]);
  expectProblem(await end(program!.id, member), 404, 'not_found');
});

test('neither a token nor a session of a token lists programs', async () => {
  const asked = await world.api.call('GET', '/console/programs', { key: tenant.token });
  expectProblem(asked, 403, 'forbidden');
  const pasted = await world.call('POST', '/console/session', { body: { token: tenant.token } });
  const ofToken = String(pasted.headers['set-cookie']).split(';')[0] ?? '';
  const answer = await world.call('GET', '/console/programs', { cookie: ofToken });
  expectProblem(answer, 403, 'forbidden');
});

test('a program ends itself by its token, once', async () => {
  const made = await letIn();
  const other = await letIn();
  expect((await callAsProgram('/revocation', { token: made.token })).json()).toEqual({
    revoked: true,
  });
  expect(await statusesOf(made)).toEqual([401, 401]);
  expect(await statusesOf(other)).toEqual([200, 200]);
  expect((await callAsProgram('/revocation', { token: made.token })).json()).toEqual({
    revoked: false,
  });
});

test('the token of a machine, a key and a made-up token do not revoke a program', async () => {
  const { key } = await letIn();
  for (const token of [tenant.token, key, 'sa_live_unknown'])
    expect((await callAsProgram('/revocation', { token })).json()).toEqual({ revoked: false });
  const account = `/v1/accounts/${tenant.accountId}`;
  expect((await world.api.call('GET', account, { key: tenant.token })).statusCode).toBe(200);
});

// The thief of a laptop has its profile too.
test('an end of all sessions of a user ends the programs, and the logins that no program has collected', async () => {
  const member = await world.insertUser(tenant, 'member');
  const session = await world.signIn(member.email);
  const made = await letIn(session);
  const waiting = await approved(session);
  const path = usersPath(`${member.userId}/sessions`);
  const answer = await world.call('DELETE', path, { cookie });
  expect(answer.json()).toEqual({ ended: 1, programs_ended: 1 });
  expect(await statusesOf(made)).toEqual([401, 401]);
  expect((await collect(waiting)).json()).toMatchObject({ error: 'expired_token' });
});

test('a reset of the second factor ends the programs', async () => {
  const member = await world.insertUser(tenant, 'member');
  const made = await letIn(await world.signIn(member.email));
  await sql`
    insert into second_factors (account_id, user_id, secret, confirmed_at)
    values (${tenant.accountId}, ${member.userId}, 'x', now())`.execute(world.api.database);
  await sql`
    update users set is_two_factor_enabled = true
     where account_id = ${tenant.accountId} and user_id = ${member.userId}`.execute(
    world.api.database,
  );
  const path = usersPath(`${member.userId}/second_factor`);
  expect((await world.call('DELETE', path, { cookie })).statusCode).toBe(204);
  expect(await statusesOf(made)).toEqual([401, 401]);
});

// The machine of the former user would act for the next one.
test('the programs of a user who was removed do not come back with an invitation', async () => {
  const member = await world.insertUser(tenant, 'member');
  const made = await letIn(await world.signIn(member.email));
  const removed = await world.call('DELETE', usersPath(String(member.userId)), { cookie });
  expect(removed.statusCode).toBe(204);
  const again = await world.call('POST', usersPath('').slice(0, -1), {
    cookie,
    body: {
      email: member.email,
      role: 'member',
      environment_ids: [tenant.environmentId],
      first_name: 'Ada',
      last_name: 'Next',
    },
  });
  expect(again.json().user).toMatchObject({ id: member.userId });
  const session = await world.signIn(member.email);
  expect(await listed(session)).toEqual([]);
  expect(await statusesOf(made)).toEqual([401, 401]);
});

// Security: a program is a session that lasts 90 days, and was let in by the first factor alone.
test('a program goes on in an account that requires two factors once its user has a second one', async () => {
  const { database } = world.api;
  const { call, codeOf, require2fa, enrolled } = secondFactorsOf(() => world);
  const machine = await letIn();
  const { access_token: token } = (await exchange(machine.token)).json();
  const ofUserWithTwo = await letIn((await enrolled('member', tenant)).cookie);
  expect((await require2fa('enable', tenant)).statusCode).toBe(204);
  expect(await statusesOf(machine)).toEqual([403, 403]);
  expect(await statusesOf({ token, key: machine.key })).toEqual([403, 403]);
  expectProblem(await exchange(machine.token), 403, 'forbidden');
  const refused = await world.api.call('GET', '/v1/workspaces', { key: machine.key });
  expect(refused.json().detail).toContain('set up an authenticator app');
  // Tokens of machines stay as they are.
  expect(await statusesOf({ token: tenant.token, key: tenant.key })).toEqual([200, 200]);
  expect(await statusesOf(ofUserWithTwo)).toEqual([200, 200]);

  const issuer = 'https://id.example';
  await sql`
    insert into identity_providers (account_id, issuer, client_id, counts_as_two_factors)
    values (${tenant.accountId}, ${issuer}, 'sluice', true)`.execute(database);
  expect(await statusesOf(machine)).toEqual([403, 403]);
  await sql`
    insert into user_identities (account_id, user_id, issuer, subject)
    values (${tenant.accountId}, ${admin.userId}, ${issuer}, 'ada')`.execute(database);
  expect(await statusesOf(machine)).toEqual([200, 200]);
  await sql`update identity_providers set counts_as_two_factors = false
    where account_id = ${tenant.accountId}`.execute(database);
  expect(await statusesOf(machine)).toEqual([403, 403]);

  const session = await world.signIn(admin.email);
  const { secret } = (await call('POST', '/console/second_factor/setup', session)).json();
  const code = codeOf(secret);
  expect((await call('POST', '/console/second_factor', session, { code })).statusCode).toBe(200);
  expect(await statusesOf(machine)).toEqual([200, 200]);
});

test('a sign-out ends the session alone: the program goes on', async () => {
  const made = await letIn();
  expect((await world.call('DELETE', '/console/session', { cookie })).statusCode).toBe(204);
  expect(await statusesOf(made)).toEqual([200, 200]);
});

test('ten programs act for a user at a time: the eleventh ends the oldest', async () => {
  const [first, second] = [await letIn(cookie, 'first'), await letIn(cookie, 'second')];
  for (let index = 3; index <= 10; index += 1) await letIn(cookie, `machine-${index}`);
  expect(await statusesOf(first)).toEqual([200, 200]);
  // The user has tried ten codes already.
  await letIn(cookie, 'eleventh');
  expect(await statusesOf(first)).toEqual([401, 401]);
  expect(await statusesOf(second)).toEqual([200, 200]);
  const names = (await listed()).map(({ name }) => name);
  expect(names).toHaveLength(10);
  expect(names[0]).toBe('sluice login on eleventh');
  expect(names[9]).toBe('sluice login on second');
});

test('the audit log has the user who let the program in, its credentials, its address and its end', async () => {
  const made = await letIn();
  const [program] = await listed();
  await callAsProgram('/revocation', { token: made.token }, PROGRAM_IP);
  const path = `/v1/accounts/${tenant.accountId}/audit_logs?object_type=api_credential`;
  const { audit_logs: entries } = (await world.api.call('GET', path, { key: tenant.token })).json();
  const own = entries.filter(
    ({ object_name }: { object_name: string }) => object_name === 'sluice login on ada-laptop',
  );
  const summary = own
    .toReversed()
    .map((entry: { action: string; actor: { type: string; user_id: number }; ip_addr: string }) => [
      entry.action,
      entry.actor.type,
      entry.actor.user_id,
      entry.ip_addr,
    ]);
  expect(summary).toEqual([
    ['created', 'user', admin.userId, PROGRAM_IP],
    ['created', 'user', admin.userId, PROGRAM_IP],
    ['updated', 'service_account', null, PROGRAM_IP],
    ['updated', 'service_account', null, PROGRAM_IP],
  ]);
  expect(own.map(({ object_id }: { object_id: string }) => object_id)).toContain(
    String(program?.id),
  );
  const text = JSON.stringify(entries);
  for (const secret of [made.token, made.key]) expect(text).not.toContain(secret);
});

test('all users of an account together try 1,000 codes an hour', async () => {
  const { database, clock } = world.api;
  const hourMs = 3_600_000;
  const windowMs = Math.floor(clock.nowMs / hourMs) * hourMs;
  await takeCalls(database, `device code of account ${tenant.accountId}`, 1_000, windowMs, hourMs);
  const look = (session: string) =>
    world.call('POST', '/console/device', { cookie: session, body: { code: 'BBBB-BBBB' } });
  expectProblem(await look(cookie), 429, 'too_many_attempts');
  const member = await world.insertUser(tenant, 'member');
  expectProblem(await look(await world.signIn(member.email)), 429, 'too_many_attempts');
  const other = await insertTenant(database, `programs_other_${count}`);
  const theirs = await world.insertUser(other, 'account_admin');
  expectProblem(await look(await world.signIn(theirs.email)), 422, 'invalid_code');
});

// Both lock the account, the login and the credentials: in different orders they would wait for each other.
test('a program that collects while its user is removed has no rights afterwards', async () => {
  for (let round = 0; round < 5; round += 1) {
    const member = await world.insertUser(tenant, 'member');
    const login = await approved(await world.signIn(member.email));
    const [answer, removed] = await Promise.all([
      collect(login),
      world.call('DELETE', usersPath(String(member.userId)), { cookie }),
    ]);
    expect(removed.statusCode).toBe(204);
    expect([200, 400]).toContain(answer.statusCode);
    if (answer.statusCode === 200) expect(await statusesOf(answer.json())).toEqual([401, 401]);
  }
});
