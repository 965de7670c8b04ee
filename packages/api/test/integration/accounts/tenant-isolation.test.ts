/** Security: the key of workspace A cannot read or change objects of workspace B, or show that they exist. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken, type Tenant } from '../support/inserted-rows.ts';
import { snapshotOf } from '../support/changing-operations.ts';
import {
  fillPath,
  isNamedByCaller,
  keyOf,
  listOperations,
  type Operation,
  QUERIES,
  WORDS_IN_PATHS,
} from '../support/every-operation.ts';
import {
  insertOwned,
  OBJECT_SEARCH,
  ownedBody,
  untilMisuseIsRecorded,
} from '../support/tenant-world.ts';

let api: ApiUnderTest;
/** In every text of B's rows. */
const MARKER = 'belongs-to-b';
let ownedByB: Readonly<Record<string, string>>;

beforeAll(async () => {
  api = await startApi();
  ownedByB = await insertOwned(api, api.b, MARKER);
});
afterAll(() => api.close());

const goodBody = (operation: Operation): object => ownedBody(operation, MARKER);

/** Without operations that need no credentials and operations of the operator's staff, which belong to no tenant. */
const operationsOfTenants = () =>
  listOperations(api).filter(
    ({ path, opensWith }) =>
      opensWith !== 'nothing' &&
      path !== '/v1/fleet' &&
      !path.startsWith('/v1/account_signup/partner_application'),
  );

const ownedBy = (name: string): string => {
  const value = ownedByB[name];
  if (value === undefined)
    throw new Error(`say here what of B a path parameter {${name}} can name`);
  return value;
};

const callAs = (tenant: Tenant, operation: Operation, url: string) =>
  api.call(operation.method, url, {
    key: keyOf(operation, tenant),
    ...(operation.takesBody && { body: goodBody(operation) }),
  });

/** Every row of B, in an order of its own. */
async function snapshotOfB(): Promise<string> {
  const tables = [
    'people',
    'events',
    'objects',
    'relationships',
    'webhooks',
    'lanes',
    'delivery_log',
    'delivery_attempts',
    'webhook_replays',
    'replay_attempts',
    'ingestion_issues',
    'imports',
    'import_problems',
    'inbox_preview_runs',
    'event_types',
    'applications',
    'portal_links',
  ];
  const texts = await Promise.all(
    tables.map(async (table) => {
      const { rows } = await sql`
        select to_jsonb(t) as row from ${sql.table(table)} t where environment_id = ${api.b.environmentId}
        order by to_jsonb(t)::text`.execute(api.database);
      return JSON.stringify(rows);
    }),
  );
  return texts.join('\n');
}

test('I35: every operation by A on an id of B is 404, like an unknown id, and leaves B unchanged', async () => {
  const before = await snapshotOfB();
  const operations = operationsOfTenants().filter(
    (operation) => operation.pathParameters.length > 0 && !isNamedByCaller(operation),
  );
  expect(operations.length).toBeGreaterThanOrEqual(7);
  for (const operation of operations) {
    const ofB = await callAs(api.a, operation, fillPath(operation, ownedBy));
    const ofNobody = await callAs(
      api.a,
      operation,
      fillPath(operation, () => '2000000000'),
    );
    const shown = expectProblem(ofB, 404, 'not_found');
    expect(shown.message).toBe(expectProblem(ofNobody, 404, 'not_found').message);
    const ids = operation.pathParameters.filter((name) => WORDS_IN_PATHS[name] === undefined);
    if (!ids.includes('account_id') || ids.length === 1) continue;
    // In the right account, an object of another.
    const inOwnAccount = (valueOf: (name: string) => string) =>
      callAs(
        api.a,
        operation,
        fillPath(operation, (name) =>
          name === 'account_id' ? String(api.a.accountId) : (WORDS_IN_PATHS[name] ?? valueOf(name)),
        ),
      );
    const ofBInA = expectProblem(await inOwnAccount(ownedBy), 404, 'not_found');
    const ofNobodyInA = await inOwnAccount(() => '2000000000');
    expect(ofBInA.message).toBe(expectProblem(ofNobodyInA, 404, 'not_found').message);
  }
  expect(await snapshotOfB()).toBe(before);
  // It must not be a change that a test below sees.
  await untilMisuseIsRecorded(api);
});

test("a feed or an event type that A makes by a name of B is A's own, and B's stays as it was", async () => {
  const before = await snapshotOfB();
  const operations = operationsOfTenants().filter(isNamedByCaller);
  expect(operations.map(({ path }) => path)).toEqual([
    '/v1/event_types/{name}',
    '/v1/feeds/{name}',
  ]);
  for (const operation of operations) {
    const url = fillPath(operation, ownedBy);
    const made = await callAs(api.a, operation, url);
    expect(made.statusCode, made.body).toBe(200);
    expect((await api.call('DELETE', url)).statusCode).toBe(200);
  }
  expect(await snapshotOfB()).toBe(before);
});

test('I35: a token that may only read is refused on every operation of its account that is no read', async () => {
  await insertToken(api.database, api.b.accountId, 'sa_reader_of_b', { isReadOnly: true });
  const before = await snapshotOf(api);
  const operations = operationsOfTenants().filter(
    ({ method, opensWith }) => method !== 'GET' && opensWith === 'account_token',
  );
  expect(operations.length).toBeGreaterThan(20);
  for (const operation of operations) {
    const answer = await api.call(operation.method, fillPath(operation, ownedBy), {
      key: 'sa_reader_of_b',
      ...(operation.takesBody && { body: goodBody(operation) }),
    });
    expectProblem(answer, 403, 'read_only');
  }
  expect((await snapshotOf(api)) === before).toBe(true);
});

test('the lists of A hold only data of A, even if a filter names data of B', async () => {
  const operations = operationsOfTenants().filter(
    (operation) =>
      (operation.method === 'GET' || operation.path === '/v1/objects') &&
      operation.pathParameters.length === 0,
  );
  expect(operations.length).toBeGreaterThanOrEqual(5);
  for (const operation of operations) {
    const query = operation.queryParameters.includes('email')
      ? `?email=${MARKER}@example.com`
      : `?${QUERIES[operation.path] ?? ''}`;
    const answer = await callAs(api.a, operation, operation.path + query);
    expect(answer.statusCode).toBe(200);
    expect(answer.body).not.toContain(MARKER);
  }
  const filtered = await api.call('GET', `/v1/ingestion_issues?source=${MARKER}`);
  expect(filtered.json().ingestion_issues).toEqual([]);
});

test('A cannot find a svc_id of B, although it is only a number in another notation', async () => {
  const answer = await api.call('GET', `/v1/customers?email=${MARKER}@example.com`, {
    key: api.b.key,
  });
  const [{ svc_id: svcId }] = answer.json().results;
  expectProblem(
    await api.call('GET', `/v1/customers/${svcId}/attributes?id_type=svc_id`),
    404,
    'not_found',
  );
});

test('A cannot find a svc_object_id of B', async () => {
  const path = (key: string) => api.call('POST', '/v1/objects', { key, body: OBJECT_SEARCH });
  const [{ svc_object_id: ownId }] = (await path(api.b.key)).json().identifiers;
  for (const part of ['attributes', 'relationships']) {
    const url = `/v1/objects/1/${ownId}/${part}?id_type=svc_object_id`;
    expect((await api.call('GET', url, { key: api.b.key })).statusCode).toBe(200);
    expectProblem(await api.call('GET', url), 404, 'not_found');
  }
});

test("a position from B's list moves A nowhere but in its own", async () => {
  const start = Buffer.from(JSON.stringify(['2026-03-01', 'z', 'z', 'z'])).toString('base64url');
  const answer = await api.call('GET', `/v1/ingestion_issues?start=${start}`);
  expect(answer.json().ingestion_issues).toEqual([]);
});

test('the same calls work with the key of B, so that the refusals above mean something', async () => {
  // Purchases need a payment method type, a plan and a payment provider: `billing-purchases.test.ts` shows that they
  // work.
  const operations = operationsOfTenants().filter(
    ({ path }) => !path.includes('/billing/') && path !== '/v1/vendor_events',
  );
  // Operations that delete come last, the part before the whole.
  const deletes = ({ method, path }: Operation) => (method === 'DELETE' ? 1 / path.length : 0);
  for (const operation of operations.toSorted((one, other) => deletes(one) - deletes(other))) {
    const query =
      operation.path === '/v1/customers'
        ? `?email=${MARKER}@example.com`
        : `?${QUERIES[operation.path] ?? ''}`;
    const answer = await callAs(api.b, operation, fillPath(operation, ownedBy) + query);
    expect({ ...operation, isRefused: answer.statusCode >= 300, body: answer.body }).toMatchObject({
      isRefused: false,
    });
  }
});
