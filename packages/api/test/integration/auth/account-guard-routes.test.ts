/** Security: refusals of account routes, their traces, and the rights in the description. */
import { fastify } from 'fastify';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { accountCallerOf, guardAccounts } from '../../../src/auth/account-guard.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { SECRET } from '../support/api-under-test.ts';
import { insertToken, type Tenant } from '../support/inserted-rows.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const accountPath = ({ accountId }: Tenant, path = '') => `/v1/accounts/${accountId}${path}`;

/** How many refusals of the reason a call causes. */
async function notedBy(
  reason: 'ip_not_allowed' | 'other_account',
  ask: () => Promise<unknown>,
): Promise<number> {
  const { counts } = world.api.refusedCredentials;
  const before = counts.get(reason) ?? 0;
  await ask();
  return (counts.get(reason) ?? 0) - before;
}

let tokenCount = 0;
async function newToken(given: Parameters<typeof insertToken>[3] = {}): Promise<string> {
  const token = `sa_live_routes_${++tokenCount}`;
  await insertToken(world.api.database, world.api.a.accountId, token, given);
  return token;
}

async function signInToken(token: string): Promise<string> {
  const answer = await world.call('POST', '/console/session', { body: { token } });
  expect(answer.statusCode, answer.body).toBe(204);
  return cookieOf(answer);
}

describe('a refusal is noted', () => {
  test('of a token from an address that it does not allow', async () => {
    const token = await newToken({ ipAllowlist: ['10.0.0.0/8'] });
    const noted = await notedBy('ip_not_allowed', async () => {
      const answer = await world.api.call('GET', accountPath(world.api.a), { key: token });
      const { message } = expectProblem(answer, 403, 'ip_not_allowed');
      expect(message).toContain('the token may not be used from this address');
    });
    expect(noted).toBe(1);
    const asOther = await notedBy('other_account', () =>
      world.api.call('GET', accountPath(world.api.a), { key: token }),
    );
    expect(asOther).toBe(0);
  });

  test('of a token on another account, also in the session that it opened', async () => {
    const { a, b } = world.api;
    const cookie = await signInToken(await newToken());
    for (const ask of [
      () => world.api.call('GET', accountPath(b), { key: a.token }),
      () => world.call('GET', accountPath(b), { cookie }),
    ]) {
      const noted = await notedBy('other_account', async () => {
        expect(expectProblem(await ask(), 404, 'not_found').message).toBe('account not found');
      });
      expect(noted).toBe(1);
    }
  });

  test('not of a user with an old bookmark, who is refused all the same', async () => {
    const { a, b } = world.api;
    const cookie = await world.signIn((await world.insertUser(a, 'account_admin')).email);
    expect((await world.call('GET', accountPath(a), { cookie })).statusCode).toBe(200);
    const noted = await notedBy('other_account', async () => {
      expectProblem(await world.call('GET', accountPath(b), { cookie }), 404, 'not_found');
    });
    expect(noted).toBe(0);
  });
});

describe('a route', () => {
  test('that needs a scope is closed to tokens without it, of any role', async () => {
    const { api } = world;
    const record = (key: string) =>
      api.call('POST', accountPath(api.a, '/billing/inbox_previews/runs'), { key, body: {} });
    const without = await newToken({ role: 'account_admin', scopes: ['partners:write'] });
    expect(expectProblem(await record(without), 403, 'forbidden').message).toContain('usage:write');
    const withScope = await newToken({ role: 'member', scopes: ['usage:write'] });
    expectProblem(await record(withScope), 422, 'validation_failed');
  });

  test('with a reason of its own to refuse a call gives it, and makes no change then', async () => {
    const { api } = world;
    const path = accountPath(api.a, '/api_credentials');
    const make = (key: string, name: string) =>
      api.call('POST', path, {
        key,
        body: { name, type: 'service_account', scopes: ['usage:write'] },
      });
    const names = async () => {
      const list = await api.call('GET', path, { key: api.a.token });
      return list.json().api_credentials.map(({ name }: { name: string }) => name) as string[];
    };
    const narrower = await newToken({ role: 'account_admin', scopes: ['partners:write'] });
    expectProblem(await make(narrower, 'beyond its own scopes'), 403, 'forbidden');
    const equal = await newToken({ role: 'account_admin', scopes: ['usage:write'] });
    expect((await make(equal, 'within its scopes')).statusCode).toBe(200);
    expect(await names()).toContain('within its scopes');
    expect(await names()).not.toContain('beyond its own scopes');
  });
});

test('an operation is described with the token that it takes, and the scope that it needs, or else the roles', async () => {
  const { paths } = (await world.api.app.inject('/openapi.json')).json();
  const operationOf = (method: string, path: string) =>
    paths[`/v1/accounts/{account_id}${path}`][method];
  const usage = operationOf('post', '/billing/inbox_previews/runs');
  expect(usage.description).toMatch(/\. Needs the scope `usage:write`\.$/);
  const users = operationOf('get', '/all_users');
  expect(users.description).toMatch(/\. Needs the role `account_admin`\.$/);
  expect(users).toMatchObject({
    security: [{ account_token: [] }],
    'x-sluice-role': 'account_admin',
  });
  // It has no text of its own.
  expect(operationOf('get', '').description).toMatch(
    /^Needs the role `member` or .*`account_admin`\.$/,
  );
});

test('a session that lacks its second factor opens no route, and its answer names the missing step', async () => {
  const { email, cookie } = await secondFactorsOf(() => world).enrolled();
  const url = accountPath(world.api.a);
  expect((await world.call('GET', url, { cookie })).statusCode).toBe(200);
  const incomplete = await world.signIn(email);
  const refused = await world.call('GET', url, { cookie: incomplete });
  expect(expectProblem(refused, 403, 'forbidden').message).toContain('lacks the second factor');
});

test('calls in a session that a token opened count as the token’s own, under its number', async () => {
  const limited = await startConsole({ ratePerMinute: 4 });
  onTestFinished(() => limited.close());
  const { a, database } = limited.api;
  // The first of the four.
  const opened = await limited.call('POST', '/console/session', { body: { token: a.token } });
  const inSession = () => limited.call('GET', accountPath(a), { cookie: cookieOf(opened) });
  const byToken = () => limited.api.call('GET', accountPath(a), { key: a.token });
  const remaining: unknown[] = [];
  for (const ask of [inSession, byToken, inSession])
    remaining.push((await ask()).headers['ratelimit-remaining']);
  expect(remaining).toEqual(['2', '1', '0']);
  for (const ask of [inSession, byToken]) expectProblem(await ask(), 429, 'rate_limited');
  // Processes of other versions count under the same name.
  const { rows } = await sql<{ subject: string }>`
    select subject from call_counts where subject = (
      select 'token ' || credential_id from api_credentials
       where secret_hash = sha256(${a.token}::bytea))`.execute(database);
  expect(rows).toHaveLength(1);
});

describe('a route that is declared wrongly', () => {
  test('without rights keeps the process from starting', async () => {
    const app = fastify();
    onTestFinished(() => app.close());
    const { api } = world;
    const { database, clock, refusedCredentials } = api;
    const nowMs = () => clock.nowMs;
    guardAccounts(app, {
      ...{ database, refusedCredentials, secret: SECRET, now: nowMs, monotonicNow: nowMs },
      ...{ ratePerMinute: 0, demoHosts: [], operatorAccountIds: [] },
    });
    expect(() => app.get('/open', async () => 'open')).toThrow(
      '/open has no config.access; add the rights that it needs',
    );
  });

  test('outside the guard has no caller, and fails', () => {
    expect(() => accountCallerOf({ accountCaller: null } as never)).toThrow(
      'stands outside the scope that guards',
    );
  });
});
