import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import { insertKey, startApi, type ApiUnderTest } from './api-under-test.ts';

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
