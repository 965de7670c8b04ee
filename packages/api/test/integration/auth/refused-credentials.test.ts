/** Wrong tokens: their traces, and the limit of their answers for one address. */
import { REFUSED_PER_MINUTE_MAX } from '../../../src/auth/refused-credentials.ts';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

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
  for (let n = 0; n < 3; n++)
    expect((await read(b.accountId, a.token, '198.51.100.1')).statusCode).toBe(404);
  await vi.waitFor(
    async () => {
      expect((await read(b.accountId, a.token, '198.51.100.1')).statusCode).toBe(404);
      expect(await misuses()).toHaveLength(1);
    },
    { timeout: 60_000, interval: 2_000 },
  );
  expect((await misuses())[0]).toMatchObject({ accountId: a.accountId });
  expect(JSON.stringify((await misuses())[0]?.changes)).toContain(`"${b.accountId}"`);
  api.clock.nowMs += 3_600_000;
  // An entry that Postgres could not take in time is made at the next use.
  await vi.waitFor(
    async () => {
      expect((await read(b.accountId, a.token, '198.51.100.1')).statusCode).toBe(404);
      expect(await misuses()).toHaveLength(2);
    },
    { timeout: 60_000, interval: 2_000 },
  );
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
