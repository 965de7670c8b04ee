/** Wrong tokens: their traces, and the limit of their answers for one address. */
import { REFUSED_PER_MINUTE_MAX } from '../../../src/auth/refused-credentials.ts';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertKey, insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi(
    { trustedProxies: ['127.0.0.1'] },
    { refusedPerMinuteMax: REFUSED_PER_MINUTE_MAX },
  );
});
afterAll(() => api.close());

const read = (accountId: number, key: string, address: string) =>
  api.call('GET', `/v1/accounts/${accountId}`, {
    key,
    headers: { 'x-forwarded-for': address },
  });

const misuses = async () => {
  const { rows } = await sql<{ accountId: number; changes: unknown }>`
    select account_id::int as "accountId", changes from audit_logs where object_type = 'credential_misuse'
     order by audit_log_id`.execute(api.database);
  return rows;
};

test('a token that is used on another account is recorded in its own account, once an hour, and nowhere else', async () => {
  const { a, b } = api;
  const countBefore = (
    await sql`select 1 from audit_logs where account_id = ${b.accountId}`.execute(api.database)
  ).rows.length;
  let askedCount = 0;
  const ask = async (): Promise<void> => {
    expect((await read(b.accountId, a.token, '198.51.100.1')).statusCode).toBe(404);
    askedCount++;
  };
  /** The answer does not wait for the record. A record of the hour before may not come after the clock is set. */
  const untilCounted = () =>
    vi.waitFor(
      async () => {
        const { rows } = await sql<{ taken: number }>`
          select taken::int as taken from call_counts where subject like 'misuse %'`.execute(
          api.database,
        );
        expect(rows).toEqual([{ taken: askedCount }]);
      },
      { timeout: 60_000, interval: 50 },
    );
  for (let n = 0; n < 3; n++) await ask();
  await untilCounted();
  expect(await misuses()).toMatchObject([{ accountId: a.accountId }]);
  expect(JSON.stringify((await misuses())[0]?.changes)).toContain(`"${b.accountId}"`);
  api.clock.nowMs += 3_600_000;
  askedCount = 0;
  // One more than before, so that the count of the hour before does not end the wait.
  for (let n = 0; n < 4; n++) await ask();
  await untilCounted();
  expect(await misuses()).toHaveLength(2);
  const after = await sql`select 1 from audit_logs where account_id = ${b.accountId}`.execute(
    api.database,
  );
  expect(after.rows).toHaveLength(countBefore);
});

test('60 wrong tokens a minute of an address are answered 401, further ones 429; right ones pass, and other addresses', async () => {
  const { a } = api;
  const guess = (address: string, n: number) => read(a.accountId, `sa_live_guess_${n}`, address);
  for (let n = 0; n < 60; n++) expect((await guess('203.0.113.7', n)).statusCode).toBe(401);
  const limited = await guess('203.0.113.7', 60);
  expect(limited.statusCode).toBe(429);
  expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
  expect((await read(a.accountId, a.token, '203.0.113.7')).statusCode).toBe(200);
  expect((await guess('203.0.113.8', 0)).statusCode).toBe(401);
  const appKey = await api.call('GET', '/v1/reporting_webhooks', {
    key: 'wrong',
    headers: { 'x-forwarded-for': '203.0.113.7' },
  });
  expect(appKey.statusCode).toBe(429);
  // A network of IPv6 is one caller, and no credentials are no guess.
  for (let n = 0; n < 60; n++) await guess(`2001:db8::${n.toString(16)}`, n);
  expect((await guess('2001:db8::ffff', 0)).statusCode).toBe(429);
  const bare = await api.call('GET', `/v1/accounts/${a.accountId}`, {
    headers: { 'x-forwarded-for': '203.0.113.7', authorization: '' },
  });
  expect(bare.statusCode).toBe(401);
  api.clock.nowMs += 60_000;
  expect((await guess('203.0.113.7', 61)).statusCode).toBe(401);
});

test('right tokens cause no statement that counts wrong ones, nor do wrong ones beyond the limit', async () => {
  const { a } = api;
  api.clock.nowMs += 60_000;
  const address = '203.0.113.90';
  const countsBy = async (use: () => Promise<unknown>): Promise<number> => {
    const sent = await statementsSentBy(use);
    return sent.filter(({ text }) => text.includes('call_counts')).length;
  };
  const readTimes = (count: number, key: string, status: number) => async () => {
    for (let n = 0; n < count; n++)
      expect((await read(a.accountId, key, address)).statusCode).toBe(status);
  };
  expect(await countsBy(readTimes(5, a.token, 200))).toBe(0);
  expect(await countsBy(readTimes(60, 'sa_live_wrong', 401))).toBe(60);
  // The 61st asks in vain.
  expect(await countsBy(readTimes(20, 'sa_live_wrong', 429))).toBeLessThanOrEqual(1);
  expect(await countsBy(readTimes(5, a.token, 200))).toBe(0);
});

test('refusals are counted by reason, and one line in ten seconds names the last with its address and hint', async () => {
  const { a } = api;
  const { refusedCredentials } = api;
  const before = refusedCredentials.counts.get('not_in_force') ?? 0;
  api.clock.nowMs += 60_000;
  api.refusals.length = 0;
  for (let n = 0; n < 5; n++) await read(a.accountId, `sa_live_secret_${n}abc`, '198.51.100.9');
  expect(refusedCredentials.counts.get('not_in_force')).toBe(before + 5);
  expect(api.refusals).toHaveLength(1);
  expect(api.refusals[0]).toMatchObject({
    reason: 'not_in_force',
    address: '198.51.100.9',
    hint: '0abc',
  });
  expect(JSON.stringify(api.refusals)).not.toContain('sa_live_secret');
  api.clock.nowMs += 10_000;
  await read(a.accountId, 'sa_live_more', '198.51.100.9');
  expect(api.refusals[1]).toMatchObject({ refusedCount: 5, hint: 'more' });
});

test('each refusal of a role, a scope, read-only mode or a workspace is counted, and logged with its route', async () => {
  const { a, b, database } = api;
  const { counts } = api.refusedCredentials;
  const member = 'sa_live_of_a_member';
  await insertToken(database, a.accountId, member, { role: 'member', scopes: [] });
  const reader = 'app_key_that_reads';
  await insertKey(database, a.environmentId, 'app', reader);
  await sql`update api_credentials set is_read_only = true where secret_hash = ${hashSecret(reader)}`.execute(
    database,
  );
  const account = `/v1/accounts/${a.accountId}`;
  const previews = `${account}/billing/inbox_previews/usage_log`;
  const refused = [
    [{ method: 'GET', url: `${account}/api_credentials`, key: member }, 'forbidden'],
    [{ method: 'GET', url: '/v1/fleet', key: a.token }, 'forbidden'],
    [{ method: 'POST', url: '/v1/reporting_webhooks', key: reader, body: {} }, 'read_only'],
    [
      { method: 'GET', url: `${previews}?environment_id=${b.environmentId}`, key: a.token },
      'environment_not_owned',
    ],
  ] as const;
  for (const [{ method, url, ...options }, code] of refused) {
    api.clock.nowMs += 10_000;
    api.refusals.length = 0;
    api.everyRefusal.length = 0;
    const before = counts.get(code) ?? 0;
    for (let n = 0; n < 2; n++) expectProblem(await api.call(method, url, options), 403, code);
    expect(counts.get(code), url).toBe(before + 2);
    const line = { reason: code, address: '127.0.0.1', method, hint: options.key.slice(-4) };
    expect(api.everyRefusal).toMatchObject([line, line]);
    expect(api.refusals).toMatchObject([line]);
    expect(api.refusals[0]).toHaveProperty('route', expect.stringMatching(/^\/v1\//));
  }
});

test('a refusal of one reason leaves the line of another', async () => {
  const { a } = api;
  api.clock.nowMs += 10_000;
  api.refusals.length = 0;
  await read(a.accountId, 'sa_live_wrong', '198.51.100.10');
  await read(a.accountId, '', '198.51.100.10');
  expect(api.refusals).toMatchObject([{ reason: 'not_in_force' }, { reason: 'missing' }]);
});
