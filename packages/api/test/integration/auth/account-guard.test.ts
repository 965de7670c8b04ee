/** Security: the credentials that open an account route, and the answers to every other call. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant, insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const accountPath = (accountId: number | string = api.a.accountId) => `/v1/accounts/${accountId}`;
const read = (token: string, path = accountPath()) => api.call('GET', path, { key: token });

let tokenCount = 0;
async function newToken(given: Parameters<typeof insertToken>[3] = {}): Promise<string> {
  const token = `sa_sandbox_made_${++tokenCount}`;
  await insertToken(api.database, api.a.accountId, token, given);
  return token;
}

const revoke = (token: string) =>
  sql`
    update api_credentials set revoked_at = now()
     where account_id = ${api.a.accountId} and secret_hint = ${token.slice(-4)}`.execute(
    api.database,
  );

const EXCHANGE = {
  method: 'POST',
  url: '/v1/service_accounts/oauth/token',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
} as const;
const exchange = (fields: Record<string, string>) =>
  api.app.inject({
    ...EXCHANGE,
    payload: new URLSearchParams({ grant_type: 'client_credentials', ...fields }).toString(),
  });

describe('a token', () => {
  test('opens its own account', async () => {
    const answer = await read(api.a.token);
    expect(answer.statusCode).toBe(200);
    expect(answer.json().account.id).toBe(api.a.accountId);
  });

  test.each([
    ['no token', ''],
    ['one that nobody has', 'Bearer sa_live_nothing'],
    ['another scheme', 'Basic c2E6c2E='],
    ['two words', 'Bearer a b'],
    ['not ASCII', 'Bearer é'],
  ])('%s is 401 with WWW-Authenticate', async (_name, authorization) => {
    const answer = await api.call('GET', accountPath(), { headers: { authorization } });
    expectProblem(answer, 401, 'unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  test('of the app API opens no account, and an account token no workspace', async () => {
    expectProblem(await read(api.a.key), 401, 'unauthorized');
    const answer = await api.call('GET', '/v1/reporting_webhooks', { key: api.a.token });
    expectProblem(answer, 401, 'unauthorized');
  });

  test('that has expired is 401 from that moment on', async () => {
    // Ahead of Postgres, whose clock counts too.
    api.clock.nowMs = Date.now() + 3_600_000;
    const token = await newToken({ expiresAt: new Date(api.clock.nowMs + 500).toISOString() });
    expect((await read(token)).statusCode).toBe(200);
    api.clock.nowMs += 499;
    expect((await read(token)).statusCode).toBe(200);
    api.clock.nowMs += 1;
    expectProblem(await read(token), 401, 'unauthorized');
  });

  test('that is revoked is 401 within a second, also while it is in use', async () => {
    const token = await newToken();
    expect((await read(token)).statusCode).toBe(200);
    await revoke(token);
    api.clock.nowMs += 1000;
    expectProblem(await read(token), 401, 'unauthorized');
  });

  test('that has expired by the clock of Postgres is 401, even if the clock of the API is behind', async () => {
    const token = await newToken({ expiresAt: new Date(Date.now() - 1_000).toISOString() });
    api.clock.setBackMs = api.clock.nowMs - Date.now() + 3_600_000;
    expectProblem(await read(token), 401, 'unauthorized');
    api.clock.setBackMs = 0;
  });

  test.each([3_600_000, -3_600_000])(
    'that is revoked is 401 within a second, though the clock was set back by %i ms',
    async (setBackMs) => {
      const token = await newToken();
      expect((await read(token)).statusCode).toBe(200);
      await revoke(token);
      api.clock.setBackMs = setBackMs;
      api.clock.nowMs += 1_000;
      expectProblem(await read(token), 401, 'unauthorized');
      api.clock.setBackMs = 0;
    },
  );

  test('whose role is taken away loses its rights within a second, also for its exchanged tokens and repeated calls', async () => {
    const token = await newToken();
    const lent = (await exchange({ client_secret: token })).json().access_token as string;
    const make = (key: string) =>
      api.call('POST', accountPath() + '/api_credentials', {
        key,
        body: { name: 'a', type: 'service_account' },
        headers: { 'idempotency-key': `made-before-${token}` },
      });
    expect((await make(token)).statusCode).toBe(200);
    expect((await make(lent)).headers['idempotent-replayed']).toBe('true');
    await sql`
      update service_accounts s set role = 'member' from api_credentials c
       where c.secret_hash = sha256(${token}::bytea) and s.account_id = c.account_id
         and s.service_account_id = c.service_account_id`.execute(api.database);
    api.clock.nowMs += 1000;
    for (const key of [token, lent]) {
      expectProblem(await make(key), 403, 'forbidden');
      const refused = await read(key, `${accountPath()}/all_users`);
      expect(expectProblem(refused, 403, 'forbidden').message).toContain('the role account_admin');
      expect((await read(key)).statusCode).toBe(200);
    }
  });

  test('of an account that is closed while it is in use is 401 within a second, lent out too', async () => {
    const { accountId } = await insertTenant(api.database, 'soon_closed');
    const lent = (await exchange({ client_secret: 'sa_sandbox_soon_closed' })).json()
      .access_token as string;
    const tokens = ['sa_sandbox_soon_closed', lent];
    for (const each of tokens)
      expect((await read(each, accountPath(accountId))).statusCode).toBe(200);
    await sql`update accounts set status = 'closed' where account_id = ${accountId}`.execute(
      api.database,
    );
    api.clock.nowMs += 1000;
    for (const each of tokens)
      expectProblem(await read(each, accountPath(accountId)), 401, 'unauthorized');
  });

  test('of a closed account is 401', async () => {
    await sql`insert into accounts (account_id, name, status) values (9000, 'closed', 'closed')`.execute(
      api.database,
    );
    await insertToken(api.database, 9000, 'sa_live_closed');
    expectProblem(await read('sa_live_closed', accountPath(9000)), 401, 'unauthorized');
  });

  test('may be bound to addresses', async () => {
    const here = await newToken({ ipAllowlist: ['10.0.0.0/8', '127.0.0.1'] });
    const elsewhere = await newToken({ ipAllowlist: ['10.0.0.0/8', '2001:db8::/32'] });
    expect((await read(here)).statusCode).toBe(200);
    expectProblem(await read(elsewhere), 403, 'ip_not_allowed');
  });

  test('has the time and address of its last use, with an IPv4 address for an IPv4 client of an IPv6 socket', async () => {
    const token = await newToken();
    const headers = { authorization: `Bearer ${token}` };
    await api.app.inject({ url: accountPath(), headers, remoteAddress: '::ffff:127.0.0.1' });
    await expect
      .poll(
        async () => {
          const { rows } = await sql<{ at: Date; ip: string }>`
          select last_used_at as at, last_used_ip as ip from api_credentials
           where account_id = ${api.a.accountId} and secret_hint = ${token.slice(-4)}
             and last_used_at is not null`.execute(api.database);
          return rows.map(({ at, ip }) => ({ atMs: at.getTime(), ip }));
        },
        { timeout: 20_000 },
      )
      .toContainEqual({ atMs: api.clock.nowMs, ip: '127.0.0.1' });
  });
});

describe('the account in the path', () => {
  test('of another owner is answered like an unknown account, for every role', async () => {
    const member = await newToken({ role: 'member', isReadOnly: true });
    for (const token of [api.a.token, member]) {
      const bodies = new Set<string>();
      for (const id of [api.b.accountId, 2_000_000_000, 'x', `0${api.a.accountId}`, '-1']) {
        const answer = await api.call('GET', accountPath(id), {
          key: token,
          headers: { 'x-request-id': 'same' },
        });
        expectProblem(answer, 404, 'not_found');
        bodies.add(answer.body);
      }
      expect(bodies.size).toBe(1);
    }
  });

  test('is found by its own workspaces, also deleted ones, and a foreign workspace is answered like an unknown one', async () => {
    const path = (id: number) => `/v1/account_by_environment/${id}`;
    const own = await read(api.a.token, path(api.a.environmentId));
    expect(own.json().account.id).toBe(api.a.accountId);
    const { rows } = await sql<{ id: number }>`
      insert into environments (account_id, name, webhook_signing_key, deleted_at)
      values (${api.a.accountId}, 'gone', 'key', now()) returning environment_id as id`.execute(
      api.database,
    );
    const deleted = await read(api.a.token, path(rows[0]!.id));
    expect(deleted.json().account.id).toBe(api.a.accountId);
    const foreign = await read(api.a.token, path(api.b.environmentId));
    const nobodys = await read(api.a.token, path(2_000_000_000));
    expectProblem(nobodys, 404, 'not_found');
    expect(expectProblem(foreign, 404, 'not_found').message).toBe(nobodys.json().message);
  });
});

describe('the exchange', () => {
  test('gives a token that reads the same account for fifteen minutes', async () => {
    const answer = await exchange({ client_secret: api.a.token });
    expect(answer.json()).toMatchObject({
      token_type: 'Bearer',
      expires_in: 900,
      scope: 'usage:write',
    });
    const { access_token: accessToken } = answer.json();
    expect((await read(accessToken)).json().account.id).toBe(api.a.accountId);
    expectProblem(await read(accessToken, accountPath(api.b.accountId)), 404, 'not_found');
    api.clock.nowMs += 900_000;
    expectProblem(await read(accessToken), 401, 'unauthorized');
  });

  test('ends with the token that it came from', async () => {
    const token = await newToken();
    const { access_token: accessToken } = (await exchange({ client_secret: token })).json();
    expect((await read(accessToken)).statusCode).toBe(200);
    await revoke(token);
    api.clock.nowMs += 1000;
    expectProblem(await read(accessToken), 401, 'unauthorized');
  });

  test('narrows and never widens', async () => {
    const narrowed = await exchange({ client_secret: api.a.token, scope: 'read_only' });
    expect(narrowed.json().scope).toBe('read_only');
    const readOnly = await newToken({ isReadOnly: true, scopes: [] });
    expect((await exchange({ client_secret: readOnly })).json().scope).toBe('read_only');
    const widened = await exchange({ client_secret: api.a.token, scope: 'partners:write' });
    expect(expectProblem(widened, 400, 'invalid_request').errors[0]?.field).toBe('scope');
    expect(widened.json().error).toBe('invalid_scope');
  });

  test('does not prolong an access token', async () => {
    const { access_token: accessToken } = (await exchange({ client_secret: api.a.token })).json();
    const again = await exchange({ client_secret: accessToken });
    expectProblem(again, 401, 'unauthorized');
    expect(again.json().error).toBe('invalid_client');
  });

  test.each([
    ['client_secret=', 'client_secret', 'invalid_request'],
    ['client_secret=a&client_secret=b', 'client_secret', 'invalid_request'],
    ['client_secret=a&grant_type=password', 'grant_type', 'unsupported_grant_type'],
    ['client_secret=a&grant_type=', 'grant_type', 'unsupported_grant_type'],
  ])('refuses %s as RFC 6749 has it, and names the field', async (sent, field, error) => {
    const given = sent.includes('grant_type') ? sent : `${sent}&grant_type=client_credentials`;
    const answer = await api.app.inject({ ...EXCHANGE, payload: given });
    expect(expectProblem(answer, 400, 'invalid_request').errors[0]?.field).toBe(field);
    expect(answer.json().error).toBe(error);
  });

  test('refuses a malformed request with a problem that also has the OAuth error code', async () => {
    const payload = { grant_type: 'client_credentials' };
    const missing = await api.app.inject({ ...EXCHANGE, headers: {}, payload });
    expect(expectProblem(missing, 400, 'invalid_request').errors[0]?.field).toBe('client_secret');
    expect(missing.json().error).toBe('invalid_request');
    const headers = { 'content-type': 'text/plain' };
    const text = await api.app.inject({ ...EXCHANGE, headers, payload: 'a' });
    expectProblem(text, 415, 'unsupported_media_type');
  });
});

test('a token over its calls a minute is refused, each answer shows the rest, and other tokens go on', async () => {
  const limited = await startApi({ ratePerMinute: 3 });
  const path = `/v1/accounts/${limited.a.accountId}`;
  const get = () => limited.call('GET', path, { key: limited.a.token });
  const answers = [await get(), await get(), await get()];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  expect(answers.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['2', '1', '0']);
  expect(answers[0]?.headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-reset': '60' });
  const refused = await get();
  expect(expectProblem(refused, 429, 'rate_limited').message).toContain('3 calls a minute');
  expect(refused.headers).toMatchObject({ 'retry-after': '60', 'ratelimit-remaining': '0' });
  const ofB = await limited.call('GET', `/v1/accounts/${limited.b.accountId}`, {
    key: limited.b.token,
  });
  expect(ofB.statusCode).toBe(200);
  limited.clock.nowMs += 60_000;
  expect((await get()).statusCode).toBe(200);
  await limited.close();
});

// Security: a caller who may choose the address escapes limits and allow lists.
test('X-Forwarded-For counts only from a trusted proxy', async () => {
  const behindProxy = await startApi({ trustedProxies: ['127.0.0.1'] });
  const bound = { ipAllowlist: ['192.0.2.7'] };
  for (const each of [api, behindProxy])
    await insertToken(each.database, each.a.accountId, 'sa_bound', bound);
  const callFrom = (each: ApiUnderTest, forwardedFor = '192.0.2.7') =>
    each.call('GET', `/v1/accounts/${each.a.accountId}`, {
      key: 'sa_bound',
      headers: { 'x-forwarded-for': forwardedFor },
    });
  expect((await callFrom(behindProxy)).statusCode).toBe(200);
  expect((await callFrom(behindProxy, '192.0.2.7:51324')).statusCode).toBe(200);
  expectProblem(await callFrom(behindProxy, '192.0.2.8:51324'), 403, 'ip_not_allowed');
  expectProblem(await callFrom(api), 403, 'ip_not_allowed');
  await behindProxy.close();
});
