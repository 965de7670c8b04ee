/** An API with one object for each operation, and hostile texts. */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from './api-under-test.ts';
import {
  insertEvent,
  insertPendingPurchase,
  insertPerson,
  insertTestReceipt,
} from './inserted-rows.ts';
import { insertExport } from './audit-log-world.ts';
import { insertLockedOutUser } from './locked-out-user.ts';
import { insertPreviewRuns } from './usage-world.ts';
import {
  BODIES,
  keyOf,
  listOperations,
  type Operation,
  WORDS_IN_PATHS,
} from './every-operation.ts';

/** Thousands of calls: more than the usual time on a machine that others use too. */
export const SWEEP_TIMEOUT_MS = 600_000;

/** A body with members for every operation that takes one. */
const CONFIGURATION = {
  name: 'a',
  endpoint: 'https://example.com',
  events: ['email_sent'],
  event_type: 'email_sent',
  sequence: 1,
  rate_limit_per_second: 5,
  window_max: 5,
  headers: { 'x-a': 'b' },
  attribute_filters: [{ field: 'metric', operator: 'eq', values: ['sent'] }],
};

export const CONDITION = { field: 'name', operator: 'eq', value: 'Acme', type_id: '1' };
const OBJECT_SEARCH = { object_type_id: '1', filter: { object_attribute: CONDITION } };

/** A body that the operation takes, which the tests then spoil. */
export const goodBody = ({ method, path }: Operation): Record<string, unknown> =>
  path === '/v1/objects' ? OBJECT_SEARCH : (BODIES[`${method} ${path}`] ?? CONFIGURATION);

export const TEXTS = [
  '',
  ' ',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e309',
  '0x1f',
  'NaN',
  'Infinity',
  'null',
  'true',
  '[]',
  '{}',
  '2147483648',
  '9223372036854775808',
  '9'.repeat(900),
  '٣',
  '１',
  '\0',
  'a\0b',
  '\uFFFD',
  '\u202E',
  '\u{1F600}',
  '"',
  "'",
  '\\',
  '%',
  '_',
  '%%%',
  "' or '1'='1",
  "'; drop table people; --",
  '$1',
  '${7*7}',
  '../../etc/passwd',
  '<script>alert(1)</script>',
  '\r\nset-cookie: a=b',
  '__proto__',
  'constructor',
  'toString',
  'x'.repeat(999),
  'é'.repeat(300),
];

/** Sent as they are, not encoded again. */
export const RAW_TEXTS = [
  '%',
  '%zz',
  '%ff',
  '%c3%28',
  '%ed%a0%80',
  '%00',
  '%25',
  '%2f',
  '%2e%2e',
  '+',
  '%u0041',
];

/** A documented status: 200 or 204, or a problem. */
export function expectDocumented(
  operation: Operation,
  answer: Awaited<ReturnType<ApiUnderTest['call']>>,
  sent: unknown,
): void {
  const { method, path, statuses } = operation;
  const shown = JSON.stringify({ method, path, sent, body: answer.body.slice(0, 300) });
  expect(statuses, shown).toContain(answer.statusCode);
  if (answer.statusCode >= 400) expectProblem(answer, answer.statusCode, answer.json().code);
  else expect([200, 204], shown).toContain(answer.statusCode);
}

export type HostileWorld = Awaited<ReturnType<typeof startHostileWorld>>;

export async function startHostileWorld() {
  const api = await startApi();
  await insertPerson(api.database, api.a.environmentId, { personId: 1, id: 'ada' });
  const made = await api.call('POST', '/v1/reporting_webhooks', { body: CONFIGURATION });
  const replay = await api.call('POST', `/v1/reporting_webhooks/${made.json().id}/replays`, {
    body: { since: 0 },
  });
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    values (${api.a.environmentId}, 1, 1, 'acme', '{"name": "Acme"}', now(), now())`.execute(
    api.database,
  );
  await api.call('POST', '/v1/applications', { body: { id: 'acme', name: 'Acme' } });
  await api.call('PUT', '/v1/event_types/acme', { body: {} });
  await api.call('PUT', '/v1/feeds/acme', { body: { events: ['customer_subscribed'] } });
  // A feed without an event would keep its readers waiting.
  await appendDeliveries(api.database, [
    {
      environmentId: api.a.environmentId,
      eventType: 'customer_subscribed',
      eventId: 'subscribed-1',
      objectType: 'customer',
      metric: 'subscribed',
      occurredAtMs: 0,
      data: {},
    },
  ]);
  const existing: Record<string, string> = {
    application_id: 'acme',
    name: 'acme',
    webhook_id: String(made.json().id),
    identifier: 'ada',
    sequence: '1',
    attempt: '1',
    object_type_id: '1',
    object_id: 'acme',
    ...WORDS_IN_PATHS,
    partner_id: 'partner_1',
    account_id: String(api.a.accountId),
    user_id: await insertLockedOutUser(api, api.a, 'ada'),
    id: String(api.a.spareCredentialId),
    audit_log_id: '1',
    ...(await insertExport(api, api.a)),
    environment_id: String(api.a.environmentId),
    event_id: 'event-1',
    credit_type: 'llm',
    run_id: 'run_of_a',
    plan_id: 'premium_month',
    preview_job_id: 'job-of-a',
    import_id: '1',
    replay_id: String(replay.json().replay.id),
  };
  await insertPendingPurchase(api.database, api.a.accountId, 'run_of_a');
  await insertPreviewRuns(api, api.a, ['job-of-a']);
  await api.call('POST', '/v1/imports', { body: BODIES['POST /v1/imports'] });
  await insertEvent(api.database, api.a.environmentId, {
    personId: 1,
    eventId: 'event-1',
    occurredAt: '2026-02-28T10:00:00Z',
  });
  await insertTestReceipt(api.database, api.a.accountId, existing['id']!);
  // DELETE last: it removes the objects that the others are tried on.
  const operations = listOperations(api).toSorted((one) => (one.method === 'DELETE' ? 1 : -1));
  return {
    api,
    operations,
    /** By path parameter, A's objects. */
    existing,
    /** As workspace or account A. */
    call: (operation: Operation, url: string, options: Parameters<ApiUnderTest['call']>[2] = {}) =>
      api.call(operation.method, url, { key: keyOf(operation, api.a), ...options }),
  };
}
