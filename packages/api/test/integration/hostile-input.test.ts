/** Whatever a client sends, on every operation: a documented answer that names the field, never a 500. */
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

/** Thousands of calls: more than the usual time on a machine that others use too. */
const SWEEP_TIMEOUT_MS = 300_000;

let api: ApiUnderTest;
let operations: Operation[];
let existing: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
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
  existing = {
    webhook_id: String(made.json().id),
    identifier: 'ada',
    sequence: '1',
    object_type_id: '1',
    object_id: 'acme',
    ...WORDS_IN_PATHS,
    partner_id: 'partner_1',
    account_id: String(api.a.accountId),
    id: String(api.a.spareCredentialId),
    audit_log_id: '1',
    ...(await insertExport(api, api.a)),
    environment_id: String(api.a.environmentId),
    event_id: 'event-1',
    credit_type: 'llm',
    run_id: 'run_of_a',
    plan_id: 'premium_month',
    import_id: '1',
    replay_id: String(replay.json().replay.id),
  };
  await insertPendingRun(api.database, api.a.accountId, 'run_of_a');
  await api.call('POST', '/v1/imports', { body: BODIES['POST /v1/imports'] });
  await insertEvent(api.database, api.a.environmentId, {
    personId: 1,
    eventId: 'event-1',
    occurredAt: '2026-02-28T10:00:00Z',
  });
  await insertTestReceipt(api.database, api.a.accountId, existing['id']!);
  // DELETE last: it takes away what the others are tried on.
  operations = listOperations(api).toSorted((one) => (one.method === 'DELETE' ? 1 : -1));
});
afterAll(() => api.close());

/** What every operation that takes a body finds its own members in. */
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

const CONDITION = { field: 'name', operator: 'eq', value: 'Acme', type_id: '1' };
const OBJECT_SEARCH = { object_type_id: '1', filter: { object_attribute: CONDITION } };

/** A body that the operation takes, which the tests then spoil. */
const goodBody = ({ method, path }: Operation): Record<string, unknown> =>
  path === '/v1/objects' ? OBJECT_SEARCH : (BODIES[`${method} ${path}`] ?? CONFIGURATION);

/** As workspace or account A. */
const call = (
  operation: Operation,
  url: string,
  options: Parameters<ApiUnderTest['call']>[2] = {},
) => api.call(operation.method, url, { key: keyOf(operation, api.a), ...options });

const TEXTS = [
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
const RAW_TEXTS = [
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

function expectDocumented(
  operation: Operation,
  answer: Awaited<ReturnType<ApiUnderTest['call']>>,
  sent: unknown,
): void {
  const context = {
    method: operation.method,
    path: operation.path,
    sent,
    body: answer.body.slice(0, 300),
  };
  expect({
    ...context,
    isDocumented: operation.statuses.includes(answer.statusCode),
  }).toMatchObject({ isDocumented: true });
  if (answer.statusCode >= 400) expectProblem(answer, answer.statusCode, answer.json().code);
  else
    expect({ ...context, isDone: [200, 204].includes(answer.statusCode) }).toMatchObject({
      isDone: true,
    });
}

const bodyOf = (operation: Operation) => (operation.takesBody ? { body: goodBody(operation) } : {});

test('the operations tried are all that the document has', () => {
  expect(operations.length).toBeGreaterThanOrEqual(13);
});

test('in every path parameter', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  for (const operation of operations.filter((each) => each.pathParameters.length > 0)) {
    // Each by itself, so that it is not a refusal of another that is seen; and all of them.
    for (const spoiled of [...operation.pathParameters.map((name) => [name]), undefined]) {
      for (const text of [...TEXTS, ...RAW_TEXTS]) {
        const url = operation.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
          if (spoiled && !spoiled.includes(name)) return encodeURIComponent(existing[name]!);
          return RAW_TEXTS.includes(text) ? text : encodeURIComponent(text);
        });
        const answer = await call(operation, url, bodyOf(operation));
        // An empty segment or "..": another path, or none. Half a percent sign: no path at all.
        if (answer.statusCode === 405 || answer.json().code === 'invalid_request') continue;
        // 403 of what only the staff may call, whatever it names; 422 where the body, which is refused
        // for fields of other operations, is read before a plan is looked up in the catalogue.
        const statuses = operation.path.endsWith('/plans/{plan_id}') ? [403, 404, 422] : [403, 404];
        expectDocumented({ ...operation, statuses }, answer, { spoiled, text });
      }
    }
  }
});

test('in every query parameter', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  for (const operation of operations.filter((each) => each.method === 'GET')) {
    const url = fillPath(operation, (name) => existing[name]!);
    const required = operation.path === '/v1/customers' ? '&email=a@example.com' : '';
    for (const name of operation.queryParameters) {
      for (const value of [...TEXTS.map(encodeURIComponent), ...RAW_TEXTS]) {
        const own = name === 'email' ? '' : required;
        expectDocumented(operation, await call(operation, `${url}?${name}=${value}${own}`), {
          name,
          value,
        });
        expectDocumented(
          operation,
          await call(operation, `${url}?${name}=${value}&${name}=1${own}`),
          { name, value, times: 2 },
        );
        expectDocumented(operation, await call(operation, `${url}?${name}[a]=${value}${own}`), {
          name,
          value,
          nested: true,
        });
      }
    }
  }
});

test('in query keys that nobody knows', async () => {
  for (const operation of operations.filter((each) => each.method === 'GET')) {
    const url = fillPath(operation, (name) => existing[name]!);
    for (const query of [
      '__proto__=1',
      '__proto__[limit]=9',
      'constructor=1',
      'a=1',
      '&&==&',
      '%00=1',
      `x${'='.repeat(5000)}`,
      '%ff=%ff',
    ]) {
      const required = operation.path === '/v1/customers' ? '&email=a@example.com' : '';
      const answer = await call(operation, `${url}?${query}${required}`);
      // These ask for the name of a purchase, which unknown keys do not give, or for the invoiced rail.
      if (
        /(purchase_status|checkout_status|overage_estimate|billing\/payment|billing\/profile)$/.test(
          operation.path,
        )
      ) {
        expectDocumented(operation, answer, query);
        continue;
      }
      expect({ path: operation.path, query, status: answer.statusCode }).toMatchObject({
        status: 200,
      });
    }
  }
});

test('in every body field, and as the body', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  const values: unknown[] = [
    ...TEXTS,
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    [],
    {},
    [[]],
    [null],
    [{}],
    { a: { b: 1 } },
  ];
  for (const operation of operations.filter((each) => each.takesBody)) {
    const url = fillPath(operation, (name) => existing[name]!);
    for (const value of values) {
      expectDocumented(operation, await call(operation, url, { body: value ?? null }), value);
      for (const field of [
        ...Object.keys(goodBody(operation)),
        'disabled',
        'full_resolution',
        'with_content',
        'reason',
        'id',
        'type',
        'x',
      ]) {
        const body = { ...goodBody(operation), [field]: value };
        expectDocumented(operation, await call(operation, url, { body }), body);
        expectDocumented(
          operation,
          await call(operation, url, {
            body: { ...goodBody(operation), [field]: [value] },
          }),
          [body],
        );
      }
    }
  }
});

const RAW_BODIES: [name: string, type: string | undefined, payload: string | Buffer][] = [
  ['empty JSON', 'application/json', ''],
  ['a byte order mark', 'application/json', '\uFEFF{}'],
  [
    'half of a surrogate pair',
    'application/json',
    '{"name":"\\ud800","endpoint":"https://a.example","events":["email_sent"]}',
  ],
  [
    '__proto__ keys',
    'application/json',
    '{"__proto__":{"disabled":true},"constructor":{"prototype":{"a":1}}}',
  ],
  ['the same key a thousand times', 'application/json', `{${'"name":1,'.repeat(1000)}"name":"a"}`],
  ['30,000 lists', 'application/json', `{"name":${'['.repeat(30_000)}${']'.repeat(30_000)}}`],
  ['10,000 objects', 'application/json', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  ['a megabyte', 'application/json', `{"name":"${'x'.repeat(1_048_576)}"}`],
  ['no UTF-8', 'application/json', Buffer.from([0x7b, 0xc3, 0x28, 0x7d])],
  ['NUL bytes', 'application/json', Buffer.alloc(100)],
  ['a number too large', 'application/json', '{"name":1e999999}'],
  ['a form', 'application/x-www-form-urlencoded', 'name=a'],
  ['text', 'text/plain', '{}'],
  ['no type', undefined, '{}'],
  ['a broken type', '/', '{}'],
  ['a long type', `application/${'x'.repeat(5000)}`, '{}'],
  ['XML', 'application/xml', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'],
];

test.each(RAW_BODIES)(
  '%s as the body of every operation that takes one',
  async (_name, type, payload) => {
    for (const operation of operations.filter((each) => each.takesBody)) {
      const url = fillPath(operation, (name) => existing[name]!);
      const headers = type === undefined ? {} : { 'content-type': type };
      const answer = await call(operation, url, { payload, headers });
      expectDocumented(operation, answer, _name);
    }
  },
);

test.each(RAW_BODIES)(
  '%s as the body of operations that take none',
  async (_name, type, payload) => {
    for (const operation of operations.filter((each) => !each.takesBody)) {
      const url = fillPath(operation, () => '2000000000');
      const answer = await call(operation, url, {
        payload,
        headers: type === undefined ? {} : { 'content-type': type },
      });
      expect([200, 400, 404, 413, 415]).toContain(answer.statusCode);
      if (answer.statusCode >= 400) expectProblem(answer, answer.statusCode, answer.json().code);
    }
  },
);

test('in every part of a filter', async () => {
  const operation = operations.find(({ path }) => path === '/v1/objects')!;
  const values = [...TEXTS, null, true, 0, -1, 1e308, [], {}, [[]], [{}], { and: [] }, { not: {} }];
  const send = async (filter: unknown) =>
    expectDocumented(
      operation,
      await api.call('POST', '/v1/objects', { body: { object_type_id: 1, filter } }),
      filter,
    );
  for (const value of values) {
    for (const key of Object.keys(CONDITION)) {
      await send({ object_attribute: { ...CONDITION, [key]: value } });
    }
    for (const key of ['and', 'or', 'not', 'object_attribute', 'x', '__proto__']) {
      await send({ [key]: value });
      await send({ [key]: [value] });
      await send({ not: { or: [{ object_attribute: CONDITION }, { [key]: value }] } });
    }
  }
});

test('nothing of it has become part of every object', () => {
  expect(({} as Record<string, unknown>)['disabled']).toBeUndefined();
  expect(({} as Record<string, unknown>)['limit']).toBeUndefined();
});
