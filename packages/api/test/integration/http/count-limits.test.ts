/** Limits on the number of objects: the last one is made once, for any number of callers at the same time. */
import { CREDENTIAL_COUNT_MAX } from '@sluice/domain/accounts/account';
import { WEBHOOK_COUNT_MAX } from '@sluice/domain/delivery/webhook';
import { sql } from 'kysely';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeEach(async () => {
  api = await startApi();
  onTestFinished(() => api.close());
});

const makeWebhook = ({ key } = api.a) =>
  api.call('POST', '/v1/reporting_webhooks', {
    key,
    body: { name: 'a', endpoint: 'https://a.example/', events: ['email_sent'] },
  });

const makeCredential = (type: string, { accountId, environmentId, token } = api.a) =>
  api.call('POST', `/v1/accounts/${accountId}/api_credentials`, {
    key: token,
    body: {
      name: 'a',
      type,
      ...(type !== 'service_account' && { environment_id: environmentId }),
    },
  });

/** Rows until one is missing to the limit, and some that do not count. */
async function fillCredentials(kind: 'app' | 'service_account'): Promise<void> {
  const { accountId, environmentId } = api.a;
  const isToken = kind === 'service_account';
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_credentials
     where account_id = ${accountId} and (environment_id is null) = ${isToken}`.execute(
    api.database,
  );
  const missing = CREDENTIAL_COUNT_MAX - 1 - rows[0]!.count;
  await sql`
    insert into api_credentials
      (account_id, environment_id, service_account_id, kind, name, secret_hash, secret_hint, revoked_at, expires_at)
    select ${accountId}, ${isToken ? null : environmentId}::int,
           case when ${isToken} then (select min(service_account_id) from service_accounts where account_id = ${accountId}) end,
           ${kind}, 'filling', sha256((${kind} || n)::bytea), 'hint',
           case when n > ${missing} and n % 2 = 0 then now() end,
           case when n > ${missing} then ${new Date(api.clock.nowMs)}::timestamptz end
      from generate_series(1, ${missing + 10}) n`.execute(api.database);
}

/** Asks for the last one eight times at the same time, over connections that are there. */
async function atOnce(ask: () => ReturnType<ApiUnderTest['call']>) {
  await Promise.all(Array.from({ length: 8 }, () => sql`select 1`.execute(api.database)));
  const answers = await Promise.all(Array.from({ length: 8 }, ask));
  const statuses = answers.map(({ statusCode }) => statusCode);
  expect(statuses.toSorted((one, other) => one - other)).toEqual([200, ...Array(7).fill(409)]);
  return answers;
}

test('a workspace has a maximum of reporting webhooks, even if two calls ask for the last at once', async () => {
  await sql`
    insert into webhooks (environment_id, name, endpoint, events, signing_key, deleted_at)
    select ${api.a.environmentId}, 'filling', 'https://a.example/', '{email_sent}', 'key',
           case when n >= ${WEBHOOK_COUNT_MAX} then now() end
      from generate_series(1, ${WEBHOOK_COUNT_MAX + 10}) n`.execute(api.database);
  const answers = await atOnce(() => makeWebhook());

  const refused = await makeWebhook();
  expect(expectProblem(refused, 409, 'limit_reached').message).toBe(
    `the workspace has ${WEBHOOK_COUNT_MAX} reporting webhooks, which is the limit; remove one first`,
  );
  expect(refused.json().meta).toMatchObject({ limit: WEBHOOK_COUNT_MAX });
  // Another workspace is not held back, and a deleted one makes room.
  expect((await makeWebhook(api.b)).statusCode).toBe(200);
  const made = answers.find(({ statusCode }) => statusCode === 200)!.json().id as number;
  const path = `/v1/reporting_webhooks/${made}`;
  expect((await api.call('DELETE', path, { key: api.a.key })).statusCode).toBe(200);
  expect((await makeWebhook()).statusCode).toBe(200);
});

test.each([
  ['app', 'workspace'],
  ['service_account', 'account'],
] as const)(
  'credentials of type %s are limited for one %s, even if two calls ask for the last at once',
  async (type, whose) => {
    await fillCredentials(type);
    const answers = await atOnce(() => makeCredential(type));

    const refused = await makeCredential(type);
    expect(expectProblem(refused, 409, 'limit_reached').message).toBe(
      `the ${whose} has ${CREDENTIAL_COUNT_MAX} credentials in force, which is the limit; remove one first`,
    );
    expect(refused.json().meta).toMatchObject({ limit: CREDENTIAL_COUNT_MAX });
    // The other kind and another account are not held back, and a revoked one makes room.
    const other = type === 'app' ? 'service_account' : 'app';
    expect((await makeCredential(other)).statusCode).toBe(200);
    expect((await makeCredential(type, api.b)).statusCode).toBe(200);
    const made = answers.find(({ statusCode }) => statusCode === 200)!.json();
    const path = `/v1/accounts/${api.a.accountId}/api_credentials/${made.api_credential.id}`;
    expect((await api.call('DELETE', path, { key: api.a.token })).statusCode).toBe(200);
    expect((await makeCredential(type)).statusCode).toBe(200);
  },
);
