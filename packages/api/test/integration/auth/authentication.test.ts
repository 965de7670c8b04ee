import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertKey, insertTenant } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

test('a revoked key stops working within a second, also while it is in use', async () => {
  await insertKey(api.database, api.a.environmentId, 'app', 'short_lived');
  const call = () => api.call('GET', '/v1/reporting_webhooks', { key: 'short_lived' });
  expect((await call()).statusCode).toBe(200);
  await sql`
    update api_credentials set revoked_at = now()
    where environment_id = ${api.a.environmentId} and secret_hint = 'ived'`.execute(api.database);
  api.clock.nowMs += 500;
  await call();
  api.clock.nowMs += 500;
  expectProblem(await call(), 401, 'unauthorized');
});

// Security: the account's own tokens end so too.
test.each([
  ['a workspace that is deleted', 'update environments set deleted_at = now()'],
  ['an account that is closed', "update accounts set status = 'closed'"],
])('a key of %s stops working within a second', async (_name, end) => {
  const { environmentId, accountId } = await insertTenant(api.database, `ended_${_name}`);
  await insertKey(api.database, environmentId, 'app', `app_${accountId}`);
  const call = () => api.call('GET', '/v1/reporting_webhooks', { key: `app_${accountId}` });
  expect((await call()).statusCode).toBe(200);
  await sql`${sql.raw(end)} where account_id = ${accountId}`.execute(api.database);
  api.clock.nowMs += 1000;
  expectProblem(await call(), 401, 'unauthorized');
});

test.each(['track', 'pipelines'] as const)(
  'a key of kind %s does not open this API',
  async (kind) => {
    await insertKey(api.database, api.a.environmentId, kind, `key_of_${kind}`);
    expectProblem(
      await api.call('GET', '/v1/reporting_webhooks', { key: `key_of_${kind}` }),
      401,
      'unauthorized',
    );
  },
);

test('a key made a moment ago works at once, also when it was tried before', async () => {
  const call = () => api.call('GET', '/v1/reporting_webhooks', { key: 'early_bird' });
  expectProblem(await call(), 401, 'unauthorized');
  await insertKey(api.database, api.a.environmentId, 'app', 'early_bird');
  expect((await call()).statusCode).toBe(200);
});

test('a key over its calls a second is refused, each answer shows the rest, and other keys go on', async () => {
  const limited = await startApi({ keyRatePerSecond: 3 });
  const get = (key: string) => limited.call('GET', '/v1/reporting_webhooks', { key });
  const answers = [await get(limited.a.key), await get(limited.a.key), await get(limited.a.key)];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  expect(answers.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['2', '1', '0']);
  expect(answers[0]?.headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-reset': '1' });
  const refused = await get(limited.a.key);
  expectProblem(refused, 429, 'rate_limited');
  expect(refused.headers).toMatchObject({ 'retry-after': '1', 'ratelimit-remaining': '0' });
  // A refused call has no effect.
  const webhook = { name: 'n', endpoint: 'https://example.com', events: ['email_sent'] };
  const made = await limited.call('POST', '/v1/reporting_webhooks', {
    key: limited.a.key,
    body: webhook,
  });
  expectProblem(made, 429, 'rate_limited');
  expect((await get(limited.b.key)).statusCode).toBe(200);
  limited.clock.nowMs += 1000;
  expect((await get(limited.a.key)).json()).toEqual({ reporting_webhooks: [] });
  await limited.close();
});

test('without a rate limit for keys, the API counts no calls and sends no limit headers', async () => {
  const answer = await api.call('GET', '/v1/reporting_webhooks', { key: api.a.key });
  expect(Object.keys(answer.headers).filter((name) => name.startsWith('ratelimit'))).toEqual([]);
  const { rows } = await sql`select from call_counts`.execute(api.database);
  expect(rows).toHaveLength(0);
});
