/** Published messages: one or a list, each right or wrong by itself. */
import { describe, expect, test } from 'vitest';
import { readSchema } from '../../src/event-schemas/schema-document.ts';
import { parsePublish } from '../../src/publish/parse-publish.ts';

const CONTEXT = {
  environmentId: 1,
  receivedAtMs: 1_700_000_000_000,
  newId: () => 'made',
  phoneIdentifies: false,
  source: 'publish',
};
const parse = (body: unknown) => parsePublish(body, CONTEXT);
const GOOD = { event_type: 'order.paid', payload: { a: 1 } };

test('a message keeps all sent fields, and gets an id and a time if they are missing', () => {
  expect(parse(GOOD)).toEqual({
    issues: [],
    operations: [
      {
        type: 'message.publish',
        environmentId: 1,
        receivedAtMs: CONTEXT.receivedAtMs,
        eventId: 'made',
        eventType: 'order.paid',
        payload: { a: 1 },
        occurredAtMs: CONTEXT.receivedAtMs,
        source: 'publish',
      },
    ],
  });
  const whole = { event_id: 'e', application: 'acme', channel: 'eu', timestamp: 1_600_000_000 };
  expect(parse({ ...GOOD, ...whole }).operations).toMatchObject([
    { eventId: 'e', application: 'acme', channel: 'eu', occurredAtMs: 1_600_000_000_000 },
  ]);
});

test('a payload is sent as it is: times and numbers in texts are not read', () => {
  const payload = { at: '2026-01-01T00:00:00Z', n: '5', deep: [{ x: null }], '': 0 };
  expect(parse({ ...GOOD, payload }).operations).toMatchObject([{ payload }]);
});

test('a wrong message of a list costs itself alone, and its issue has its place', () => {
  const { operations, issues } = parse({ messages: [GOOD, { payload: {} }, 7, GOOD] });
  expect(operations).toHaveLength(2);
  expect(issues).toMatchObject([
    { batchIndex: 1, field: 'event_type', code: 'required' },
    { batchIndex: 2, field: null, code: 'invalid' },
  ]);
});

describe('refuses with the name of the field', () => {
  test.each<[string | null, string, unknown]>([
    [null, 'a body that is no object', []],
    ['event_type', 'no type', { payload: {} }],
    ['event_type', 'a blank type', { ...GOOD, event_type: ' ' }],
    ['event_type', 'a long type', { ...GOOD, event_type: 'x'.repeat(101) }],
    ['payload', 'no payload', { event_type: 'a' }],
    ['payload', 'a payload that is a list', { ...GOOD, payload: [1] }],
    ['event_id', 'a long id', { ...GOOD, event_id: 'x'.repeat(151) }],
    ['application', 'an application that no URL can name', { ...GOOD, application: ' .. ' }],
    ['application', 'an application that is a dot', { ...GOOD, application: '.' }],
    ['application', 'an application that is an object', { ...GOOD, application: {} }],
    ['channel', 'a long channel', { ...GOOD, channel: 'x'.repeat(151) }],
    [null, 'a large message', { ...GOOD, payload: { a: 'x'.repeat(65_536) } }],
    ['messages', 'no list', { messages: {} }],
    ['messages', 'an empty list', { messages: [] }],
    ['messages', 'a long list', { messages: Array.from({ length: 1_001 }, () => GOOD) }],
  ])('%s: %s', (field, _, body) => {
    const { operations, issues } = parse(body);
    expect(operations).toEqual([]);
    expect(issues[0]).toMatchObject({ field });
  });
});

test.each([1, 1_000])('takes %d messages', (length) => {
  expect(parse({ messages: Array.from({ length }, () => GOOD) }).operations).toHaveLength(length);
});

describe('a payload of a type that has a schema', () => {
  const read = readSchema({
    required: ['total'],
    properties: { total: { type: 'number' }, note: { pattern: '^(?:a{0,200}){2}$' } },
  });
  if (read.outcome === 'refused') throw new Error(read.message);
  const { schema } = read;
  const eventTypes = (name: string) => (name === 'order.paid' ? { version: 3, schema } : undefined);
  const check = (body: unknown) => parsePublish(body, { ...CONTEXT, eventTypes });
  const fits = { event_type: 'order.paid', payload: { total: 5 } };

  test('is taken if it fits, with the version of the schema', () => {
    expect(check(fits).operations).toMatchObject([{ eventTypeVersion: 3, payload: { total: 5 } }]);
  });

  test('is refused by itself if it does not fit, with the pointer of each place', () => {
    const messages = [fits, { ...fits, payload: { total: '5' } }, fits, { ...fits, payload: {} }];
    const { operations, issues } = check({ messages });
    expect(operations).toHaveLength(2);
    expect(issues).toMatchObject([
      { batchIndex: 1, code: 'invalid', field: 'payload.total', pointer: '/payload/total' },
      { batchIndex: 3, code: 'invalid', field: 'payload.total', pointer: '/payload/total' },
    ]);
  });

  test('of any other type is taken as it is', () => {
    const { operations } = check({ event_type: 'order.sent', payload: {} });
    expect(operations).toHaveLength(1);
    expect(operations[0]).not.toHaveProperty('eventTypeVersion');
  });

  test('of an archived type is refused, in words, and its neighbours are taken', () => {
    const { operations, issues } = parsePublish(
      { messages: [{ event_type: 'old/one', payload: {} }, fits] },
      { ...CONTEXT, eventTypes: (name) => (name === 'old/one' ? 'archived' : undefined) },
    );
    expect(operations).toMatchObject([{ eventType: 'order.paid' }]);
    expect(issues).toMatchObject([
      {
        batchIndex: 0,
        code: 'invalid',
        field: 'event_type',
        pointer: '/event_type',
        message:
          'event_type is archived, so its messages are not published: bring it back by PUT /v1/event_types/old%2Fone',
      },
    ]);
  });

  test('that is too much work is refused, and so is every message after the work of a call is used up', () => {
    const heavy = { ...fits, payload: { total: 1, note: 'a'.repeat(60_000) } };
    const { issues } = check({ messages: [heavy, fits] });
    expect(issues).toMatchObject([{ batchIndex: 0, code: 'too_large', field: 'payload' }]);
    const many = check({ messages: [...Array.from({ length: 60 }, () => heavy), fits] });
    expect(many.operations).toEqual([]);
    expect(many.issues.at(-1)).toMatchObject({ batchIndex: 60, code: 'too_large' });
  });
});
