/**
 * Security: sessions after a change of their requirements. A factor is removed or reset, or the account's rule changes.
 */
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const { call, codeOf, require2fa, enrolled, give } = secondFactorsOf(() => world);

const hashOf = (cookie: string): Buffer => hashSecret(cookie.slice(cookie.indexOf('=') + 1));

/** More than an incomplete session lasts. */
const age = (cookie: string) =>
  sql`update console_sessions
         set created_at = now() - interval '1 hour', last_seen_at = now() - interval '30 minutes'
       where session_hash = ${hashOf(cookie)}`.execute(world.api.database);

const statusOf = async (cookie: string): Promise<number> =>
  (await call('GET', '/console/me', cookie)).statusCode;

const rulePath = (tenant = world.api.b) => `/v1/accounts/${tenant.accountId}/2fa_required`;

test('the removal of the second factor ends every session that waited for it, old or new', async () => {
  const { email, cookie, secret } = await enrolled();
  const [old, fresh] = [await world.signIn(email), await world.signIn(email)];
  await age(old);
  const removed = await call('DELETE', '/console/second_factor', cookie, { code: codeOf(secret) });
  expect(removed.statusCode).toBe(204);
  expect([await statusOf(cookie), await statusOf(old), await statusOf(fresh)]).toEqual([
    200, 401, 401,
  ]);
});

test('a session with one factor is over while the account requires two, and stays so afterwards', async () => {
  const { api } = world;
  const two = await enrolled('account_admin', api.b);
  const one = await world.insertUser(api.b, 'account_admin');
  const before = await world.signIn(one.email);
  const pasted = await world.call('POST', '/console/session', { body: { token: api.b.token } });
  const old = [before, cookieOf(pasted)];
  expect(await Promise.all(old.map(statusOf))).toEqual([200, 200]);
  expect((await require2fa('enable', api.b)).statusCode).toBe(204);
  expect(await Promise.all(old.map(statusOf))).toEqual([401, 401]);
  const halves = [await world.signIn(one.email), await world.signIn(one.email)];
  await age(halves[0]!);
  expect((await require2fa('disable', api.b)).statusCode).toBe(204);
  expect(await Promise.all([...old, ...halves].map(statusOf))).toEqual([401, 401, 401, 401]);
  expect(await statusOf(two.cookie)).toBe(200);

  // A setting that is so already is no change, and ends no session.
  api.clock.nowMs += 3_600_000;
  const after = await world.signIn(one.email);
  const again = await world.call('POST', `${rulePath()}/disable`, { cookie: after });
  expect(again.statusCode).toBe(204);
  expect(await statusOf(after)).toBe(200);
});

test('calls of a session that is over do not keep it', async () => {
  const { email } = await enrolled();
  const half = await world.signIn(email);
  await age(half);
  expect(await statusOf(half)).toBe(401);
  const { rows } = await sql<{ isSeen: boolean }>`
    select last_seen_at > now() - interval '20 minutes' as "isSeen" from console_sessions
     where session_hash = ${hashOf(half)}`.execute(world.api.database);
  expect(rows).toEqual([{ isSeen: false }]);
});

test('a session whose user has removed the factor has one, and is over once the account requires two', async () => {
  const { api } = world;
  const { email, cookie, secret } = await enrolled('account_admin', api.b);
  const removed = await call('DELETE', '/console/second_factor', cookie, { code: codeOf(secret) });
  expect(removed.statusCode).toBe(204);
  expect((await require2fa('enable', api.b)).statusCode).toBe(204);
  expect(await statusOf(cookie)).toBe(401);
  const half = await world.signIn(email);
  expect((await call('GET', '/console/session', half)).json().second_factor).toBe('needs_setup');
  expect((await require2fa('disable', api.b)).statusCode).toBe(204);
});

test('a reset is refused for an unconfirmed setup, and ends the session of a confirmed one', async () => {
  const { api } = world;
  const admin = await world.signIn((await world.insertUser(api.a, 'account_admin')).email);
  const { email, userId } = await world.insertUser(api.a, 'member');
  const cookie = await world.signIn(email);
  const { secret } = (await call('POST', '/console/second_factor/setup', cookie)).json();
  const path = `/v1/accounts/${api.a.accountId}/users/${userId}/second_factor`;
  expectProblem(await world.call('DELETE', path, { cookie: admin }), 409, 'conflict');
  const confirmed = await call('POST', '/console/second_factor', cookie, { code: codeOf(secret) });
  expect(confirmed.statusCode).toBe(200);
  const reset = await world.call('DELETE', path, { cookie: admin });
  expect(reset.statusCode).toBe(204);
  expect(await statusOf(cookieOf(confirmed))).toBe(401);
});

// Security: otherwise a session alone takes the factor from its user, by a token that it makes.
test('a token that a session of the user made, or a token that it made, does not remove the factor of the user', async () => {
  const { api } = world;
  const tokens = `/v1/accounts/${api.b.accountId}/api_credentials`;
  const token = { type: 'service_account', name: 'Of a session', role: 'account_admin' };
  const user = await enrolled('account_admin', api.b);
  const cookie = user.cookie;
  const made = await world.call('POST', tokens, { cookie, body: token });
  expect(made.statusCode, made.body).toBe(200);
  const key = made.json().secret as string;
  const next = await api.call('POST', tokens, { key, body: token });
  expect(next.statusCode, next.body).toBe(200);
  const path = `/v1/accounts/${api.b.accountId}/users/${user.userId}/second_factor`;
  for (const each of [key, next.json().secret as string])
    expectProblem(await api.call('DELETE', path, { key: each }), 409, 'conflict');
  const other = await enrolled('account_admin', api.b);
  const ofOther = `/v1/accounts/${api.b.accountId}/users/${other.userId}/second_factor`;
  expect((await api.call('DELETE', ofOther, { key })).statusCode).toBe(204);
});

test('codes that are no good leave a trace by their kind, and wrong mailed codes hide no others', async () => {
  const { api } = world;
  const { email, userId, codes, secret } = await enrolled('member', api.b);
  const [good = ''] = codes;
  const halves = [await world.signIn(email), await world.signIn(email)];
  expectProblem(await world.giveCode(email, '000000'), 422, 'invalid_code');
  expect((await give(halves[0]!, { recovery_code: good })).statusCode).toBe(204);
  const failures = async () => {
    const { rows } = await sql<{ factor: string }>`
      select change->>'to' as factor
        from audit_logs, jsonb_array_elements(changes) change
       where account_id = ${api.b.accountId} and object_type = 'failed_sign_in'
         and object_id = ${String(userId)} and change->>'attribute' = 'factor'
       order by audit_log_id`.execute(api.database);
    return rows.map(({ factor }) => factor);
  };
  await expect.poll(failures, { timeout: 20_000 }).toEqual(['mailed_code']);
  // Used before, then never one, then of the app: one entry an hour for each kind.
  for (const recovery of [good, good, 'AAAA-BBBB-CCCC-DDDD'])
    expectProblem(await give(halves[1]!, { recovery_code: recovery }), 422, 'invalid_code');
  expect(await failures()).toEqual(['mailed_code', 'recovery_code']);
  for (const code of [codeOf(secret, -5), codeOf(secret, -6)])
    expectProblem(await give(halves[1]!, { code }), 422, 'invalid_code');
  expect(await failures()).toEqual(['mailed_code', 'recovery_code', 'app_code']);
});

/** The page's own calls find out by themselves who calls, after the key was looked at. */
test('the API keeps no answer of the console pages under an idempotency key', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const cookie = await world.signIn(email);
  const headers = { 'idempotency-key': 'known-to-others' };
  const setUp = (given: object) =>
    world.call('POST', '/console/second_factor/setup', { ...given, headers });
  const first = await setUp({ cookie });
  expect(first.statusCode).toBe(200);
  const stranger = await setUp({});
  expectProblem(stranger, 401, 'unauthorized');
  expect(stranger.body).not.toContain(first.json().secret);

  const confirm = (given: object) =>
    world.call('POST', '/console/second_factor', {
      ...given,
      headers,
      body: { code: codeOf(first.json().secret) },
    });
  const confirmed = await confirm({ cookie });
  expect(confirmed.statusCode).toBe(200);
  expectProblem(await confirm({}), 401, 'unauthorized');

  // A sign-in is not answered again, without the cookie, as if it had worked.
  const body = { email, code: await world.mailedCode(email) };
  const signIn = () =>
    world.call('POST', '/console/session', { headers, body, cookie: world.codeCookie(email) });
  expect((await signIn()).statusCode).toBe(204);
  expectProblem(await signIn(), 422, 'invalid_code');
  const { rows } = await sql`
    select 1 from idempotency_keys where answer is not null`.execute(world.api.database);
  expect(rows).toEqual([]);
});
