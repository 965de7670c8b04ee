import { clearOutbox } from '@sluice/database/changes/outbox';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRelay } from '../../../src/outbox/outbox-relay.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { SECRET, startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
  await insertToken(api.database, api.a.accountId, 'sa_staff', {
    role: 'member',
    scopes: ['partners:write'],
  });
});
afterAll(() => api.close());

const APPLICATION = {
  email: 'ada@startup.example',
  first_name: 'Ada',
  last_name: 'Lovelace',
  company_name: 'Engines',
  website: 'https://engines.example',
  partner_id: null,
  funding_stage: 'seed',
  total_funding: { amount: 100_000_000, currency: 'usd' },
  employee_count: 3,
  founded_on: '2026-01-31',
};
const APPLY = '/v1/account_signup/startup_application';
const apply = (change: object = {}) =>
  api.call('POST', APPLY, { body: { ...APPLICATION, ...change }, key: 'none' });

async function waitingEntries() {
  const { rows } = await sql<{ payload: Record<string, unknown> }>`
    select payload from outbox where topic = 'analytics.startup_application' order by outbox_id`.execute(
    api.database,
  );
  return rows;
}

test('an application is 204 and one event, however often and by however many it is sent', async () => {
  const answers = await Promise.all([
    ...Array.from({ length: 10 }, () => apply()),
    apply({ email: 'ADA@startup.example', company_name: 'ENGINES' }),
  ]);
  for (const answer of answers)
    expect({ status: answer.statusCode, body: answer.body }).toEqual({ status: 204, body: '' });
  expect(await waitingEntries()).toHaveLength(1);
  expect((await apply({ company_name: 'Other engines' })).statusCode).toBe(204);
  expect(await waitingEntries()).toHaveLength(2);
});

test('the event reaches the analytics target with one key, also when the target fails first', async () => {
  const received: { path: string; authorization: string; body: Record<string, unknown> }[] = [];
  const target = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({
        path: request.url ?? '',
        authorization: request.headers.authorization ?? '',
        body: JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>,
      });
      response.writeHead(received.length === 1 ? 503 : 200).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(target, 'listening');
  const failures: unknown[] = [];
  const relay = createRelay({
    database: api.database,
    mailer: { send: async () => {} },
    analytics: {
      url: `http://127.0.0.1:${(target.address() as AddressInfo).port}`,
      writeKey: 'analytics_key',
    },
    providerTimeoutMs: 1_000,
    secret: SECRET,
    now: () => api.clock.nowMs,
    onFailure: (_entry, error) => failures.push(error),
  });
  expect(await relay()).toBe(2);
  expect(failures).toHaveLength(1);
  expect(await relay()).toBe(0);
  api.clock.nowMs += 5_000;
  expect(await relay()).toBe(1);
  api.clock.nowMs += 3_600_000;
  expect(await relay()).toBe(0);
  // Once it is forgotten the same application is sent again, as the same event.
  await clearOutbox(api.database, api.clock.nowMs, 10);
  expect((await apply()).statusCode).toBe(204);
  expect(await relay()).toBe(1);
  target.close();
  await once(target, 'close');

  expect(received).toHaveLength(4);
  expect(new Set(received.map(({ body }) => body['messageId'])).size).toBe(2);
  expect(received[0]).toMatchObject({
    path: '/v1/track',
    authorization: `Basic ${Buffer.from('analytics_key:').toString('base64')}`,
    body: {
      event: 'startup_program.application_submitted',
      userId: 'ada@startup.example',
      properties: { funding_stage: 'seed', total_funding: APPLICATION.total_funding },
    },
  });
});

test.each([
  [{ email: 'a\r\nBcc: b@c.example' }, 'email'],
  [{ website: 'ftp://a.example' }, 'website'],
  [{ founded_on: '2026-02-30' }, 'founded_on'],
  [{ funding_stage: 'rich' }, 'funding_stage'],
  [{ total_funding: { amount: -1, currency: 'usd' } }, 'total_funding.amount'],
  [{ total_funding: { amount: 2 ** 53, currency: 'usd' } }, 'total_funding.amount'],
  [{ total_funding: { amount: 1, currency: 'USD' } }, 'total_funding.currency'],
  [{ employee_count: 1.5 }, 'employee_count'],
  [{ partner_id: 'partner_of_nobody' }, 'partner_id'],
  [{ admin: true }, 'admin'],
])('%j is 422 and names the field', async (change, field) => {
  const { errors } = expectProblem(await apply(change), 422, 'validation_failed');
  expect(errors[0]?.field).toBe(field);
});

test('a day that does not exist is refused with a plain message', async () => {
  const { errors } = expectProblem(
    await apply({ founded_on: '2023-02-29' }),
    422,
    'validation_failed',
  );
  expect(errors[0]?.message).toBe('founded_on must be a day that exists, as in 2026-03-01');
});

const partnerApply = (body?: object) =>
  api.call('POST', '/v1/account_signup/partner_application', {
    key: 'none',
    ...(body && { body }),
  });
const decide = (id: string, body?: object, key = 'sa_staff') =>
  api.call('PUT', `/v1/account_signup/partner_application/${id}/status`, {
    key,
    ...(body && { body }),
  });
const listed = async () =>
  (await api.call('GET', '/v1/account_signup/startup_partners', { key: 'none' })).json().partners;

test('partners apply, are decided on once by staff, and only the approved are shown, by name', async () => {
  const idOf = (answer: { json(): { partner_application: { id: string } } }) =>
    answer.json().partner_application.id;
  const zed = idOf(await partnerApply({ partner: { name: 'Zed Ventures' } }));
  const abe = idOf(
    await partnerApply({
      partner: { name: 'Abe Capital', logo_url: 'https://abe.example/logo.svg' },
    }),
  );
  const bad = idOf(await partnerApply({ partner: { name: 'Bad' } }));
  const nameless = idOf(await partnerApply());
  expect(await listed()).toEqual([]);

  expect((await decide(zed)).json().partner_application.status).toBe('approved');
  await decide(abe, { status: 'approved' });
  await decide(nameless);
  expect((await decide(bad, { status: 'rejected' })).json().partner_application.status).toBe(
    'rejected',
  );
  expect(await listed()).toEqual([
    { id: abe, name: 'Abe Capital', logo_url: 'https://abe.example/logo.svg' },
    { id: zed, name: 'Zed Ventures', logo_url: null },
  ]);
  expect((await decide(zed)).statusCode).toBe(200);
  expectProblem(await decide(zed, { status: 'rejected' }), 409, 'conflict');
  expectProblem(await decide(bad, { status: 'approved' }), 409, 'conflict');
  expectProblem(await decide('partner_nobody'), 404, 'not_found');
  expect((await apply({ company_name: 'With a partner', partner_id: abe })).statusCode).toBe(204);
  const refused = await apply({ company_name: 'With a rejected one', partner_id: bad });
  expectProblem(refused, 422, 'validation_failed');
});

test('a decision stands in the audit log of the account that decided, once', async () => {
  const id = (await partnerApply({ partner: { name: 'Mae' } })).json().partner_application.id;
  await decide(id);
  await decide(id);
  await decide(id, { status: 'rejected' });
  const answer = await api.call(
    'GET',
    `/v1/accounts/${api.a.accountId}/audit_logs?object_type=partner_application&object_id=${id}`,
    { key: api.a.token },
  );
  const [entry, ...more] = answer.json().audit_logs;
  expect(more).toEqual([]);
  expect(entry).toMatchObject({
    action: 'updated',
    object_name: 'Mae',
    changed_attributes: ['status'],
    actor: { type: 'service_account' },
  });
});

// Security: an account's own admin is not the operator's staff.
test('only a token with the scope decides', async () => {
  const id = (await partnerApply()).json().partner_application.id;
  expectProblem(await decide(id, undefined, api.a.token), 403, 'forbidden');
  expectProblem(await decide(id, undefined, 'none'), 401, 'unauthorized');
});

test('the list of partners may be kept by caches', async () => {
  const answer = await api.call('GET', '/v1/account_signup/startup_partners', { key: 'none' });
  expect(answer.headers['cache-control']).toBe('public, max-age=300');
});
