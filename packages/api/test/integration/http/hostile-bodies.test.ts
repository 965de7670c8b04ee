/** Hostile bodies on every operation. They get a documented answer that names the field, never a 500. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import type { ApiUnderTest } from '../support/api-under-test.ts';
import { fillPath, type Operation } from '../support/every-operation.ts';
import {
  CONDITION,
  expectDocumented,
  goodBody,
  type HostileWorld,
  startHostileWorld,
  SWEEP_TIMEOUT_MS,
  TEXTS,
} from '../support/hostile-world.ts';

let api: ApiUnderTest;
let operations: readonly Operation[];
let existing: Readonly<Record<string, string>>;
let call: HostileWorld['call'];
beforeAll(async () => {
  ({ api, operations, existing, call } = await startHostileWorld());
});
afterAll(() => api.close());

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
  let turn = 0;
  for (const operation of operations.filter((each) => each.takesBody)) {
    const url = fillPath(operation, (name) => existing[name]!);
    for (const value of values) {
      expectDocumented(operation, await call(operation, url, { body: value ?? null }), value);
      const fields = [
        ...Object.keys(goodBody(operation)),
        'disabled',
        'full_resolution',
        'with_content',
        'reason',
        'id',
        'type',
        'x',
      ];
      // A sixth of the fields each, in turn by itself and in a list: every value meets every operation, and
      // every field a sixth of the values, in a twelfth of the time that all of them take.
      turn += 1;
      for (const field of fields.filter((_, place) => (place + turn) % 6 === 0)) {
        const body = { ...goodBody(operation), [field]: turn % 2 === 0 ? value : [value] };
        expectDocumented(operation, await call(operation, url, { body }), body);
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

test('a body that the description requires is refused when it is missing', async () => {
  const { paths } = (await api.app.inject('/openapi.json')).json<{
    paths: Record<string, Record<string, { requestBody?: { required: boolean } }>>;
  }>();
  const required = operations.filter(
    ({ method, path }) => paths[path]?.[method.toLowerCase()]?.requestBody?.required,
  );
  expect(required.length).toBeGreaterThan(35);
  for (const operation of required)
    for (const headers of [{}, { 'content-type': 'application/json' }]) {
      const url = fillPath(operation, (name) => existing[name]!);
      const { statusCode } = await call(operation, url, { headers });
      const { method, path } = operation;
      expect([400, 422], `${method} ${path} ${statusCode}`).toContain(statusCode);
    }
});

test.each(RAW_BODIES)(
  'an operation without a body answers 200 or a 4xx problem if it gets %s',
  async (_name, type, payload) => {
    for (const [place, operation] of operations.filter((each) => !each.takesBody).entries()) {
      const url = fillPath(operation, () => '2000000000');
      // Under a key the body is read again, to be known by.
      const headers = {
        'idempotency-key': `${RAW_BODIES.findIndex(([name]) => name === _name)}-${place}`,
      };
      const answer = await call(operation, url, {
        payload,
        headers: type === undefined ? headers : { ...headers, 'content-type': type },
      });
      // The token has not the scope of the operator, whose path names no object.
      const refusal = operation.path === '/v1/fleet' ? 403 : 404;
      expect([200, 400, refusal, 413, 415]).toContain(answer.statusCode);
      if (answer.statusCode >= 400) expectProblem(answer, answer.statusCode, answer.json().code);
    }
  },
);

test('in every part of a filter', { timeout: SWEEP_TIMEOUT_MS }, async () => {
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

test('the hostile bodies leave the prototype of all objects unchanged', () => {
  expect(({} as Record<string, unknown>)['disabled']).toBeUndefined();
  expect(({} as Record<string, unknown>)['limit']).toBeUndefined();
});
