/**
 * The fast path beside the slow one: whatever it does not decline, both read alike.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { unpackOperation, type QueuedOperation } from '@sluice/domain/operations/packed-event';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { SEMANTIC_EVENT_NAMES } from '@sluice/domain/pipelines/semantic-events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { routes, type Call } from '../../src/calls/calls.ts';
import { readBody } from '../../src/calls/read-body.ts';
import { FastTrackParser, type ParsedOperations } from '../../src/commit/fast-track-parser.ts';
import { damage, damaged, trackBatch, trackCall } from '../support/track-call-texts.ts';

const AT_MS = Date.UTC(2026, 10, 20);
const SHARD_COUNT = 7;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const parser = new FastTrackParser();

function callNamed(name: string): Call {
  const route = routes.find(({ call }) => call.name === name);
  if (!route) throw new Error(`no call ${name}`);
  return route.call;
}
const calls = { track: callNamed('pipelines.track'), batch: callNamed('pipelines.batch') };

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** As it comes to Postgres: of -0 nobody hears. */
const asStored = (operation: Operation) => JSON.parse(JSON.stringify(operation)) as Operation;

const queuedAt = (fastParsed: ParsedOperations, index: number): QueuedOperation =>
  JSON.parse(
    fastParsed.memory.toString('utf8', fastParsed.startOf(index), fastParsed.endOf(index)),
  ) as QueuedOperation;

const eventIdOf = (operation: Operation): string =>
  'eventId' in operation ? operation.eventId : '';

/** What the fast path gives; undefined where it declines. */
function fastParse(bytes: Uint8Array, kind: 'track' | 'batch', environmentId: number) {
  const fastParsed = parser.parse(bytes, kind === 'batch', environmentId, AT_MS);
  if (fastParsed === undefined) return undefined;
  return Array.from({ length: fastParsed.count }, (_, index) => ({
    shard: fastParsed.keyHashOf(index) % SHARD_COUNT,
    operation: asStored(unpackOperation(queuedAt(fastParsed, index))),
  }));
}

/** What the slow path gives, as it comes to the worker. */
function parse(bytes: Uint8Array, kind: 'track' | 'batch', environmentId: number) {
  const call = calls[kind];
  const body = readBody(bytes);
  if (body.outcome !== 'read') return undefined;
  const { operations, issues } = call.parse(
    body.value,
    {
      environmentId,
      receivedAtMs: AT_MS,
      newId: () => 'made',
      phoneIdentifies: false,
      source: call.name,
      bodySizeBytes: body.sizeBytes,
      hasEscapes: body.hasEscapes,
    },
    [],
  );
  return { operations: operations.map(asStored), issues };
}

/** True where it was not declined, and then both gave the same. */
function isParsedAlike(
  bytes: Uint8Array,
  kind: 'track' | 'batch' = 'track',
  environmentId = 1,
): boolean {
  const fastParsed = fastParse(bytes, kind, environmentId);
  if (fastParsed === undefined) return false;
  const parsed = parse(bytes, kind, environmentId);
  const made = new Set<string>();
  const operations = fastParsed.map(({ shard, operation }) => {
    expect(shard).toBe(shardOf(environmentId, shardKeyOf(operation), SHARD_COUNT));
    if (operation.type !== 'event.track' || !ULID.test(operation.eventId)) return operation;
    made.add(operation.eventId);
    return { ...operation, eventId: 'made' };
  });
  expect({ operations, issues: [] }).toEqual(parsed);
  expect(made.size).toBe(
    operations.filter((each) => 'eventId' in each && each.eventId === 'made').length,
  );
  return true;
}

const plain = {
  userId: 'user-1',
  event: 'Order Placed',
  properties: { plan: 'pro', amount: 42.5, items: ['a', { b: null }], isNew: true },
  timestamp: '2026-11-20T10:00:00.123Z',
  context: { library: { name: 'x', version: '1' }, ip: '1.2.3.4' },
};
const text = (changes: Record<string, unknown> = {}) => JSON.stringify({ ...plain, ...changes });

describe('a simple call', () => {
  test.each([
    ['as the libraries send it', text()],
    ['with its own id', text({ messageId: 'node-next-1732-abc' })],
    ['with an anonymous id too', text({ anonymousId: 'a-1' })],
    ['of an email', text({ userId: 'Ada.L+x_1@mail.Example-1.COM' })],
    ['of the longest email', text({ userId: `${'a'.repeat(242)}@example.com` })],
    ['of somebody anonymous', text({ userId: null, anonymousId: 'a-1' })],
    ['without properties', text({ properties: undefined })],
    [
      'with null for nothing',
      text({ properties: null, timestamp: null, messageId: null, originalTimestamp: null }),
    ],
    ['without a time', text({ timestamp: undefined })],
    ['of the last day of a month', text({ timestamp: '2026-12-31T23:59:59.999Z' })],
    ['of a leap day', text({ timestamp: '2000-02-29T00:00:00.000Z' })],
    ['with a time to the second', text({ timestamp: '2024-02-28T23:59:59Z' })],
    ['with what is not read', text({ integrations: { All: true }, writeKey: 'k' })],
    ['sent by a clock that is right', text({ sentAt: '2026-11-20T00:00:00.500Z' })],
    ['sent by a clock that is ahead', text({ sentAt: '2026-11-20T10:00:01Z' })],
    ['sent by a clock that is behind', text({ sentAt: '2026-11-19T23:59:59.000Z' })],
    ['sent by a clock that is off by years', text({ sentAt: '2016-01-01T00:00:00Z' })],
    [
      'sent by a clock, without a time',
      text({ timestamp: undefined, sentAt: '2026-11-20T10:00:01Z' }),
    ],
    ['of a year ahead', text({ timestamp: '2027-11-21T00:00:00Z' })],
    ['of the first second that is taken', text({ timestamp: '1973-03-03T09:46:40Z' })],
    [
      'with a text that has a t',
      text({ properties: { a: 'a sheet to be seen', b: '2026 tons of it' } }),
    ],
    ['with spaces and lines', JSON.stringify(plain, null, '\t').replaceAll('\n', ' \r\n')],
    [
      'with characters beyond ASCII in its properties',
      text({ properties: { größe: '€ 𝄞 é', deep: ['日本'] } }),
    ],
    ['with short escapes in its properties', text({ properties: { note: 'a "b" \\ c\n\t/' } })],
    [
      'with the longest id and name',
      text({
        userId: 'u'.repeat(150),
        event: 'e'.repeat(100),
        anonymousId: 'a'.repeat(150),
        messageId: 'm'.repeat(150),
      }),
    ],
    [
      'that has a key twice in its properties',
      '{"userId":"u","event":"e","properties":{"a":1,"a":{"__proto__":2}}}',
    ],
  ])('%s takes the fast path', (_, body) => {
    expect(isParsedAlike(bytesOf(body))).toBe(true);
  });

  test.each([
    ['an email of rare characters', text({ userId: "o'neil@example.com" })],
    ['an email that is too long', text({ userId: `${'a'.repeat(243)}@example.com` })],
    ['what is almost an email', text({ userId: 'a@example' })],
    ['an email of two parts', text({ userId: 'a@b@example.com' })],
    ['an email without a name', text({ userId: '@example.com' })],
    ['an email with an empty label', text({ userId: 'a@example..com' })],
    ['an email with a short ending', text({ userId: 'a@example.c' })],
    ['a svc_id', text({ userId: 'svc_0a1b2c3d' })],
    ['an id that is a number', text({ userId: 7 })],
    ['an id that is blank', text({ userId: '  ' })],
    ['an id that is too long', text({ userId: 'u'.repeat(151) })],
    ['nobody', text({ userId: undefined })],
    ['no event', text({ event: undefined })],
    ['a name that is trimmed', text({ event: 'Order ' })],
    ['a name that is too long', text({ event: 'e'.repeat(101) })],
    ['a name beyond ASCII', text({ event: 'Größe' })],
    ['an anonymous id that is too long', text({ anonymousId: 'a'.repeat(151) })],
    ['an event id that may be a ULID', text({ messageId: '01jd00000000000000000000zz' })],
    ['an event id that is too long', text({ messageId: 'm'.repeat(151) })],
    ['an id that is trimmed', text({ userId: 'user-1 ' })],
    ['an event id that is trimmed', text({ messageId: 'm ' })],
    ['a time before the first that is taken', text({ timestamp: '1973-03-03T09:46:39Z' })],
    ['a time more than a year ahead', text({ timestamp: '2027-11-21T00:00:01Z' })],
    ['a clock that cannot be read', text({ sentAt: '2026-11-20' })],
    ['a clock that is empty', text({ sentAt: '' })],
    ['an instant in small letters', text({ properties: { at: '2026-11-20t10:00:00z' } })],
    ['an instant in the basic form', text({ properties: { at: '20261120T1000Z' } })],
    [
      'an instant of many digits',
      text({ properties: { at: `2026-11-20T10:00:00.${'1'.repeat(40)}Z` } }),
    ],
    ['a time that is a number', text({ timestamp: 1_732_000_000 })],
    ['a time with an offset', text({ timestamp: '2026-11-20T10:00:00+02:00' })],
    ['a day that is not there', text({ timestamp: '2026-02-30T10:00:00Z' })],
    ['a leap day of a common year', text({ timestamp: '2100-02-29T10:00:00Z' })],
    ['a month of thirty days', text({ timestamp: '2026-11-31T10:00:00Z' })],
    ['a time before 1970', text({ timestamp: '1969-12-28T10:00:00Z' })],
    ['an hour that is not there', text({ timestamp: '2026-11-20T24:00:00Z' })],
    ['a clock that is to be put right', text({ originalTimestamp: '2026-11-20T10:00:00Z' })],
    ['properties that are a list', text({ properties: [1] })],
    ['an instant among the properties', text({ properties: { at: ['2026-11-20T10:00:00Z'] } })],
    ['a key twice', '{"userId":"u","event":"e","userId":"v"}'],
    ['a key in escapes', '{"user\\u0049d":"u","event":"e","anonymousId":"a"}'],
    ['half of a pair', '{"userId":"u","event":"e","properties":{"a":"\\ud800"}}'],
    ['a number with an exponent', '{"userId":"u","event":"e","properties":{"a":1e999}}'],
    ['a number of many digits', `{"userId":"u","event":"e","properties":{"a":${'9'.repeat(400)}}}`],
    ['a number that may be rounded', text({ properties: { order_id: 10 ** 15 } })],
    ['a number that begins with 0', '{"userId":"u","event":"e","properties":{"a":01}}'],
    ['more behind its end', `${text()} {}`],
    ['an end that is missing', text().slice(0, -1)],
    ['a comma too many', '{"userId":"u","event":"e",}'],
    ['a list', '[1]'],
    ['nothing', ''],
    [
      'a level too deep',
      text({ context: JSON.parse('['.repeat(200) + ']'.repeat(200)) as unknown }),
    ],
    ...SEMANTIC_EVENT_NAMES.map((event) => [`the event "${event}"`, text({ event })]),
  ])('with %s is declined', (_, body) => {
    expect(isParsedAlike(bytesOf(body))).toBe(false);
  });

  test.each([
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe0, 0x9f, 0xbf],
    [0xf0, 0x8f, 0xbf, 0xbf],
    [0xe2, 0x82],
    [0xff],
    [0x1f],
  ])('with the bytes %i %i %i %i, which are no UTF-8, is declined', (...wrong) => {
    const bytes = Buffer.from(text({ properties: { a: '~~~~' } }));
    bytes.set(wrong, bytes.indexOf('~~~~'));
    expect(isParsedAlike(bytes)).toBe(false);
  });
});

describe('a batch', () => {
  const item = (changes: Record<string, unknown> = {}) => ({ type: 'track', ...plain, ...changes });
  const batchOf = (items: unknown[], more: Record<string, unknown> = {}) =>
    bytesOf(
      JSON.stringify({ context: { a: 1 }, batch: items, sentAt: '2026-11-20T10:00:00Z', ...more }),
    );

  test.each([
    ['behind its items', { batch: [item()], sentAt: '2026-11-20T01:00:00Z' }],
    ['before its items', { sentAt: '2026-11-20T01:00:00Z', batch: [item()] }],
    [
      'and some items say their own',
      { batch: [item({ sentAt: '2026-11-20T02:00:00Z' }), item()], sentAt: '2026-11-20T01:00:00Z' },
    ],
    [
      'and some items have no time',
      { batch: [item({ timestamp: undefined }), item()], sentAt: '2026-11-20T01:00:00Z' },
    ],
    ['which is off by years', { batch: [item()], sentAt: '2020-11-20T01:00:00Z' }],
  ])('that says when it was sent %s corrects the times of its items', (_, body) => {
    expect(isParsedAlike(bytesOf(JSON.stringify(body)), 'batch')).toBe(true);
  });

  test.each([
    ['no date', { batch: [item()], sentAt: 'now' }],
    ['empty', { batch: [item()], sentAt: '' }],
    ['a number', { batch: [item()], sentAt: 7 }],
    [
      'another number of digits away',
      { batch: [item({ timestamp: '2001-09-09T01:46:30Z' })], sentAt: '2026-11-19T23:00:00Z' },
    ],
  ])('whose sentAt is %s is declined', (_, body) => {
    expect(isParsedAlike(bytesOf(JSON.stringify(body)), 'batch')).toBe(false);
  });

  test('of track calls takes the fast path, each to its shard', () => {
    const items = Array.from({ length: 300 }, (_, index) => item({ userId: `user-${index}` }));
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(true);
  });

  test('of as many as there may be takes the fast path, of one more declined', () => {
    const items = Array.from({ length: 2_501 }, () => ({ type: 'track', userId: 'u', event: 'e' }));
    expect(isParsedAlike(batchOf(items.slice(1)), 'batch')).toBe(true);
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(false);
  });

  test('with an item of 64 KB takes the fast path, with a larger one declined', () => {
    const least = JSON.stringify(item({ properties: { a: '' } })).length;
    const ofSize = (sizeBytes: number) =>
      batchOf([item(), item({ properties: { a: 'x'.repeat(sizeBytes - least) } })]);
    expect(isParsedAlike(ofSize(65_536), 'batch')).toBe(true);
    expect(isParsedAlike(ofSize(65_537), 'batch')).toBe(false);
  });

  test.each([
    ['another call', [item(), { type: 'identify', userId: 'u' }]],
    ['a call of no type', [item(), plain]],
    ['a faulty call', [item(), item({ event: '' })]],
    ['a call that is none', [item(), 1]],
    ['nothing', []],
  ])('with %s in it is declined', (_, items) => {
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(false);
  });

  test.each([
    '{}',
    '{"batch":{}}',
    '{"batch":[]}',
    '{"batch":null}',
    '{"batch":[{"type":"track","userId":"u","event":"e"}],"batch":[]}',
    '{"batch":[{"type":"track","userId":"u","event":"e"}],"batch":[{"type":"track","userId":"v","event":"f"}]}',
  ])('%s is declined', (body) => expect(isParsedAlike(bytesOf(body), 'batch')).toBe(false));

  test('that is as large as it may be fits, whatever is in it', () => {
    const items = Array.from({ length: 2_500 }, (_, index) =>
      item({
        userId: `${index}`.padEnd(150, 'u'),
        anonymousId: 'a'.repeat(150),
        context: undefined,
        properties: undefined,
        event: 'e',
      }),
    );
    const bytes = batchOf(items);
    const whole = Buffer.alloc(1_048_576, 0x20);
    whole.set(bytes);
    expect(isParsedAlike(whole, 'batch')).toBe(true);
  });
});

test.each([
  ['track', trackCall, 6_000],
  ['batch', trackBatch, 3_000],
] as const)(
  'whatever a client sends is declined, or read as the slow path reads it: %s',
  (kind, bodies, numRuns) => {
    let parsedCount = 0;
    fc.assert(
      fc.property(
        bodies,
        damage,
        fc.constantFrom(1, 77, 2 ** 31 + 5),
        (body, damages, environmentId) => {
          if (isParsedAlike(damaged(bytesOf(body), damages), kind, environmentId)) parsedCount++;
        },
      ),
      { numRuns, seed: 20_261_122 },
    );
    expect(parsedCount).toBeGreaterThan(numRuns / 20);
  },
);

test('ids of events go up and never come twice, whatever the clock does', () => {
  let nowMs = AT_MS;
  const own = new FastTrackParser();
  const batch = bytesOf(
    JSON.stringify({
      batch: Array.from({ length: 1_500 }, () => ({ type: 'track', userId: 'u', event: 'e' })),
    }),
  );
  const ids: string[] = [];
  for (const stepMs of [0, 0, 1, -5, 0, 3, 1, 0]) {
    nowMs += stepMs;
    const fastParsed = own.parse(batch, true, 1, nowMs);
    for (let index = 0; index < (fastParsed?.count ?? 0); index++) {
      ids.push(eventIdOf(unpackOperation(queuedAt(fastParsed!, index))));
    }
  }
  expect(ids).toHaveLength(8 * 1_500);
  expect(ids.every((id) => ULID.test(id))).toBe(true);
  expect(ids).toEqual([...new Set(ids)].toSorted());
});
