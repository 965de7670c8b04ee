/** Security: an exchanged token ends with the secret that it was given for, and the exchange blocks no other caller. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const exchange = (payload: string, of = api) =>
  of.app.inject({
    method: 'POST',
    url: '/v1/service_accounts/oauth/token',
    headers: FORM,
    payload,
  });
const exchangeSecret = (secret: string, of = api) =>
  exchange(`grant_type=client_credentials&client_secret=${secret}`, of);

// Rotating a leaked secret must also end its access tokens: an admin's one could make itself a token for good.
test('an access token ends with the secret that it was exchanged for, within a second of its rotation', async () => {
  const account = `/v1/accounts/${api.a.accountId}`;
  const made = (
    await api.call('POST', `${account}/api_credentials`, {
      key: api.a.token,
      body: { name: 'a', type: 'service_account', role: 'account_admin' },
    })
  ).json();
  const read = async (key: string) => (await api.call('GET', account, { key })).statusCode;
  const leaked = (await exchangeSecret(made.secret)).json().access_token;
  expect(await read(leaked)).toBe(200);

  const rotated = await api.call(
    'POST',
    `${account}/api_credentials/${made.api_credential.id}/rotate`,
    { key: api.a.token },
  );
  api.clock.nowMs += 1000;
  expect(await read(leaked)).toBe(401);
  const again = (await exchangeSecret(rotated.json().secret)).json().access_token;
  expect(await read(again)).toBe(200);
});

test('a token that is bound to addresses is exchanged only from them', async () => {
  const bound = { ipAllowlist: ['192.0.2.7'] };
  await insertToken(api.database, api.a.accountId, 'sa_live_bound', bound);
  expectProblem(await exchangeSecret('sa_live_bound'), 403, 'ip_not_allowed');
});

test('an exchange is a call of its token, one of so many a minute', async () => {
  const limited = await startApi({ ratePerMinute: 3 });
  await insertToken(limited.database, limited.a.accountId, 'sa_live_busy');
  const answers = [
    await exchangeSecret('sa_live_busy', limited),
    await exchangeSecret('sa_live_busy', limited),
    await limited.call('GET', `/v1/accounts/${limited.a.accountId}`, { key: 'sa_live_busy' }),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  const refused = await exchangeSecret('sa_live_busy', limited);
  expectProblem(refused, 429, 'rate_limited');
  expect(refused.headers['retry-after']).toBe('60');
  expect((await exchangeSecret(limited.b.token, limited)).statusCode).toBe(200);
  await limited.close();
});

// Anybody may send one: read field by field against all others, the largest takes the process seconds.
test('a form with as many fields as fit in a body takes less than a second of processor time', async () => {
  const names = Array.from({ length: 18_000 }, (_, index) => index.toString(36)).join('&');
  const before = process.cpuUsage();
  const answer = await exchange(names.slice(0, 65_000));
  expectProblem(answer, 400, 'invalid_request');
  // Of the processor and not of the clock, for others use the machine too.
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
});
