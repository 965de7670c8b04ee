/**
 * Calls that a replica answers: their statements reach it, and their answers show it. The replica of the test records
 * its statements.
 */
import type { Database } from '@sluice/database/connection/connection';
import { createFallingBackDatabase } from '@sluice/database/connection/read-replica';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ReplicaReads } from '../../../src/http/replica-reads.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const BOUND_MS = 5_000;

let api: ApiUnderTest;
let replica: Database;
let statementCount = 0;
let isFresh = true;
const written = new Set<string>();
const fallbacks: unknown[] = [];

const replicaReads: ReplicaReads = {
  get database() {
    return replica;
  },
  stalenessMsMax: BOUND_MS,
  isFresh: () => isFresh,
  hasWritten: async (caller) => written.has(caller),
  noteWrite: async (caller) => void written.add(caller),
  onRead: () => undefined,
};

beforeAll(async () => {
  api = await startApi({ replicaReads });
  const counted = {
    executeQuery: (...given: Parameters<Database['executeQuery']>) => {
      statementCount += 1;
      return api.database.executeQuery(...given);
    },
  } as Database;
  // A statement that the replica refused would go to a primary that is not there.
  const nowhere = { executeQuery: () => Promise.reject(new Error('asked of the primary')) };
  replica = createFallingBackDatabase(nowhere as unknown as Database, counted, (error) =>
    fallbacks.push(error),
  );
});
afterAll(() => api.close());

beforeEach(() => {
  statementCount = 0;
  isFresh = true;
  written.clear();
});

const account = (path: string) => `/v1/accounts/${api.a.accountId}/${path}`;
const staleness = (answer: { readonly headers: object }) =>
  (answer.headers as Record<string, unknown>)['x-sluice-staleness-ms-max'];

test.each([
  '/v1/customers?query=',
  '/v1/customers?email=nobody@example.com',
  '/v1/customers/nobody/attributes',
  '/v1/customers/nobody/activities',
  '/v1/customers/nobody/relationships',
  '/v1/object_types',
  '/v1/objects/1/none/attributes',
  '/v1/objects/1/none/relationships',
  '/v1/ingestion_issues',
  '/v1/events',
  '/v1/events/none/trace',
  '/v1/statistics?metric=events&by=name',
  '/v1/deliveries',
  '/v1/reporting_webhooks/1/deliveries',
  '/v1/reporting_webhooks/1/replays/1/attempts',
  '/v1/imports',
  '/v1/imports/1/errors',
  '/v1/imports/1/warnings',
])('GET %s is read from the replica', async (url) => {
  const answer = await api.call('GET', url);
  expect(staleness(answer)).toBe(String(BOUND_MS));
  expect(statementCount).toBeGreaterThan(0);
  expect(fallbacks).toEqual([]);
});

test.each([
  'audit_logs',
  'audit_log/1',
  'billing/inbox_previews/usage_summaries',
  'billing/runs',
  'billing/credits/ledger',
])('GET /v1/accounts/{account_id}/%s is read from the replica', async (path) => {
  const answer = await api.call('GET', account(path), { key: api.a.token });
  expect(staleness(answer)).toBe(String(BOUND_MS));
  expect(statementCount).toBeGreaterThan(0);
  expect(fallbacks).toEqual([]);
});

test('a search whose filter is a body is a read, and no change', async () => {
  const body = {
    object_type_id: 1,
    filter: { object_attribute: { field: 'plan', operator: 'eq', value: 'premium' } },
  };
  const answer = await api.call('POST', '/v1/objects', { body });
  expect(staleness(answer)).toBe(String(BOUND_MS));
  expect(statementCount).toBeGreaterThan(0);
  expect(written).toEqual(new Set());
});

test.each(['/v1/reporting_webhooks', '/v1/workspaces', '/v1/imports/1'])(
  'GET %s is read from the primary, and its answer has no staleness header',
  async (url) => {
    expect(staleness(await api.call('GET', url))).toBeUndefined();
    expect(statementCount).toBe(0);
  },
);

test('a replica that is too old is not read, and a caller reads its own change from the primary', async () => {
  isFresh = false;
  expect(staleness(await api.call('GET', '/v1/imports'))).toBe('0');
  isFresh = true;
  const webhook = { name: 'w', endpoint: 'https://example.com/hook', events: ['event'] };
  // A change that is refused does not count.
  expect((await api.call('POST', '/v1/reporting_webhooks', { body: {} })).statusCode).toBe(400);
  expect(staleness(await api.call('GET', '/v1/imports'))).toBe(String(BOUND_MS));
  const made = await api.call('POST', '/v1/reporting_webhooks', { body: webhook });
  expect(made.statusCode).toBe(200);
  statementCount = 0;
  expect(staleness(await api.call('GET', '/v1/imports'))).toBe('0');
  expect(statementCount).toBe(0);
  // Another credential of the same workspace's account.
  const log = await api.call('GET', account('audit_logs'), { key: api.a.token });
  expect(staleness(log)).toBe(String(BOUND_MS));
});

test('a caller finds the purchase that its refused call began', async () => {
  const key = api.a.token;
  const runs = () => api.call('GET', account('billing/runs'), { key });
  expect(staleness(await runs())).toBe(String(BOUND_MS));
  // No worker is there, so the purchase goes on: the answer is a refusal with the number of the purchase.
  const refused = await api.call('POST', account('billing/plans/premium_year'), { key, body: {} });
  expect(refused.statusCode).toBe(409);
  const found = await runs();
  expect(staleness(found)).toBe('0');
  expect(found.json().runs).toMatchObject([{ run_id: refused.json().meta.run_id }]);
});
