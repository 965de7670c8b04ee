/** Security: with the key of workspace A nothing of workspace B can be read, changed, or told to exist. */
import { appendDeliveries } from '@sluice/database/deliveries';
import { insertImportProblems } from '@sluice/database/import-problems';
import { insertImport } from '@sluice/database/imports';
import { claimLane, recordProgress } from '@sluice/database/lanes';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import {
  insertEvent,
  insertPendingRun,
  insertPerson,
  insertTestReceipt,
  startApi,
  type ApiUnderTest,
  type Tenant,
} from './api-under-test.ts';
import {
  BODIES,
  fillPath,
  keyOf,
  listOperations,
  type Operation,
  WORDS_IN_PATHS,
} from './every-operation.ts';
import { insertExport } from './audit-log-world.ts';
import { insertPreviewRuns } from './usage-world.ts';

let api: ApiUnderTest;
/** In every text of B's rows. */
const MARKER = 'belongs-to-b';
let ownedByB: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  const { environmentId } = api.b;
  await insertPerson(api.database, environmentId, {
    personId: 41,
    id: MARKER,
    email: `${MARKER}@example.com`,
    attributes: { a: MARKER },
  });
  await insertEvent(api.database, environmentId, {
    personId: 41,
    eventId: `${MARKER}-event`,
    occurredAt: '2026-02-28T10:00:00Z',
  });
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    values (${environmentId}, 51, 1, ${MARKER}, '{}', now(), now())`.execute(api.database);
  await sql`
    insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
    values (${environmentId}, 41, 51, '{}', now(), now())`.execute(api.database);
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    values (${environmentId}, '2026-02-28', 'invalid', ${MARKER}, '', 1, now(), now(), 'x')`.execute(
    api.database,
  );
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    key: api.b.key,
    body: bodyFor(),
  });
  await appendDeliveries(
    api.database,
    [MARKER, `${MARKER}-2`].map((eventId) => ({
      environmentId,
      eventType: 'email_sent',
      eventId,
      objectType: 'email',
      metric: 'sent',
      occurredAtMs: 0,
      data: {},
    })),
  );
  // The first is delivered and can be resent, the second has failed and can be skipped.
  const lane = { environmentId, webhookId: Number(made.json().id) };
  const claimed = await claimLane(api.database, lane, 60_000, api.clock.nowMs);
  const nextProbeAtMs = api.clock.nowMs + 3_600_000;
  const attempt = { attempt: 1, startedAtMs: 0, durationMs: 1, failureMessage: null };
  const response = { status: 200, responseHead: MARKER, responseBody: MARKER };
  const progress = {
    snapshot: { state: 'failing', cursor: 1, attemptedThrough: 2, nextProbeAtMs, window: 1 },
    attempts: [
      { ...attempt, ...response, sequence: 1, outcome: 'delivered', failure: null },
      { ...attempt, ...response, sequence: 2, outcome: 'retrying', failure: 'timeout' },
    ],
    endpoint: bodyFor().endpoint,
    isLast: true,
  } as const;
  await recordProgress(api.database, lane, claimed!.fencing, progress, 60_000, api.clock.nowMs);
  const replay = await api.call('POST', `/v1/reporting_webhooks/${lane.webhookId}/replays`, {
    key: api.b.key,
    body: { since: 0 },
  });
  await sql`
    insert into replay_attempts (environment_id, webhook_id, replay_id, sequence, attempt, duration_ms, started_at, outcome, response_body)
    values (${environmentId}, ${lane.webhookId}, ${replay.json().replay.id}, 1, 1, 1, now(), 'delivered', ${MARKER})`.execute(
    api.database,
  );
  await insertTestReceipt(api.database, api.b.accountId, String(api.b.spareCredentialId));
  const imported = await insertImport(api.database, {
    environmentId,
    name: MARKER,
    description: null,
    identifier: 'id',
    dataToProcess: 'all',
    dataFileUrl: `https://${MARKER}.example/a.csv`,
    nowMs: api.clock.nowMs,
  });
  await insertImportProblems(api.database, imported, [
    {
      severity: 'error',
      rowNumber: 1,
      position: 0,
      column: '',
      code: 'invalid',
      message: MARKER,
      record: [MARKER],
    },
  ]);
  ownedByB = {
    import_id: String(imported.importId),
    webhook_id: String(lane.webhookId),
    identifier: MARKER,
    sequence: '1',
    object_type_id: '1',
    object_id: MARKER,
    ...WORDS_IN_PATHS,
    account_id: String(api.b.accountId),
    id: String(api.b.spareCredentialId),
    // Made with the webhook; A has none.
    audit_log_id: '1',
    ...(await insertExport(api, api.b)),
    environment_id: String(environmentId),
    event_id: `${MARKER}-event`,
    replay_id: String(replay.json().replay.id),
    credit_type: 'llm',
    run_id: 'run_of_b',
    plan_id: 'premium_month',
    preview_job_id: `${MARKER}-job`,
  };
  await insertPreviewRuns(api, api.b, [`${MARKER}-job`]);
  await insertPendingRun(api.database, api.b.accountId, 'run_of_b');
});
afterAll(() => api.close());

const bodyFor = () => ({
  name: MARKER,
  endpoint: `https://${MARKER}.example`,
  events: ['email_sent'],
  event_type: 'email_sent',
  sequence: 2,
});

const OBJECT_SEARCH = {
  object_type_id: 1,
  filter: { or: [{ object_attribute: { field: 'object_id', operator: 'exists' } }] },
};

const goodBody = ({ method, path }: Operation): object =>
  path === '/v1/objects' ? OBJECT_SEARCH : (BODIES[`${method} ${path}`] ?? bodyFor());

/** Without those that need no credentials and those of the operator's staff, which belong to no tenant. */
const operationsOfTenants = () =>
  listOperations(api).filter(
    ({ path, opensWith }) =>
      opensWith !== 'nothing' && !path.startsWith('/v1/account_signup/partner_application'),
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

test('every operation on an id of B is 404 to A, as one that nobody has, and changes nothing', async () => {
  const before = await snapshotOfB();
  const operations = operationsOfTenants().filter(
    ({ pathParameters }) => pathParameters.length > 0,
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
    // In the right account, what is another's.
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
});

test('no list of A holds anything of B, whatever it is filtered by', async () => {
  const operations = operationsOfTenants().filter(
    (operation) =>
      (operation.method === 'GET' || operation.path === '/v1/objects') &&
      operation.pathParameters.length === 0,
  );
  expect(operations.length).toBeGreaterThanOrEqual(5);
  for (const operation of operations) {
    const query = operation.queryParameters.includes('email') ? `?email=${MARKER}@example.com` : '';
    const answer = await callAs(api.a, operation, operation.path + query);
    expect(answer.statusCode).toBe(200);
    expect(answer.body).not.toContain(MARKER);
  }
  const filtered = await api.call('GET', `/v1/ingestion_issues?source=${MARKER}`);
  expect(filtered.json().ingestion_issues).toEqual([]);
});

test("a svc_id of B, which is only a number written differently, is nobody's to A", async () => {
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

test("a svc_object_id of B is nobody's to A", async () => {
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
  // Purchases need a rail, a plan and a vendor: `billing-purchases.test.ts` shows that they work.
  const operations = operationsOfTenants().filter(
    ({ path }) => !path.includes('/billing/') && path !== '/v1/vendor_events',
  );
  // What deletes comes last, the part before the whole.
  const deletes = ({ method, path }: Operation) => (method === 'DELETE' ? 1 / path.length : 0);
  for (const operation of operations.toSorted((one, other) => deletes(one) - deletes(other))) {
    const query = operation.path === '/v1/customers' ? `?email=${MARKER}@example.com` : '';
    const answer = await callAs(api.b, operation, fillPath(operation, ownedBy) + query);
    expect({ ...operation, isRefused: answer.statusCode >= 300, body: answer.body }).toMatchObject({
      isRefused: false,
    });
  }
});
