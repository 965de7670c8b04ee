import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  MADE_ID,
  nested,
  onlyOperation,
  operationOf,
  RECEIVED_AT_MS,
  refusals,
  warnings,
} from '../support/parsing.ts';

const parse = (call: PipelinesCall, body: unknown) => parsePipelines(call, body, CONTEXT);
const occurredAt = (times: object) =>
  operationOf(parse('track', { userId: 'u1', event: 'e', ...times }), 'event.track').occurredAtMs;

describe('track', () => {
  test('becomes an event of the person', () => {
    const parsed = parse('track', {
      userId: 'u1',
      event: ' Order Completed ',
      messageId: 'm-1',
      timestamp: '2024-05-01T10:20:30.123Z',
      properties: {
        total: 12.5,
        items: [{ sku: 'a' }],
        recipient: 'x@example.com',
        from_address: 'f',
        reply_to: 'r',
      },
      context: { ip: '1.2.3.4' },
      integrations: { All: true },
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'event.track',
      kind: 'event',
      person: { kind: 'id', value: 'u1' },
      eventId: 'm-1',
      name: 'Order Completed',
      data: {
        total: 12.5,
        items: [{ sku: 'a' }],
        recipient: 'x@example.com',
        from_address: 'f',
        reply_to: 'r',
      },
      occurredAtMs: Date.parse('2024-05-01T10:20:30.123Z'),
    });
  });

  test('of a browser before identify (userId null) is an event of the anonymous id', () => {
    const parsed = parse('track', {
      userId: null,
      anonymousId: 'a1',
      event: 'e',
      properties: null,
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'event.track',
      kind: 'event',
      person: { kind: 'anonymous_id', value: 'a1' },
      eventId: MADE_ID,
      name: 'e',
      data: {},
      occurredAtMs: RECEIVED_AT_MS,
    });
  });

  test('with both ids is the known person’s, and keeps the other', () => {
    expect(
      onlyOperation(parse('track', { userId: 'u1', anonymousId: 'a1', event: 'e' })),
    ).toMatchObject({
      person: { kind: 'id', value: 'u1' },
      anonymousId: 'a1',
    });
  });

  test.each([
    [{ event: 'e' }, 'required userId'],
    [{ userId: 'u1' }, 'required event'],
    [{ userId: 'u1', event: '  ' }, 'required event'],
    [{ userId: 'u1', event: 5 }, 'invalid event'],
    [{ userId: 'u1', event: 'ü'.repeat(51) }, 'too_long event'],
    [{ userId: 'u1', event: 'e', properties: [] }, 'invalid properties'],
    [{ userId: 'u1', event: 'e', properties: 'x' }, 'invalid properties'],
    [
      { userId: 'u1', event: 'e', properties: nested(101) },
      `invalid ${'properties' + '.a'.repeat(95)}`,
    ],
    [{ userId: 'u1', event: 'e', messageId: 'x'.repeat(151) }, 'too_long messageId'],
    [{ userId: 'u1', event: 'e', messageId: {} }, 'invalid messageId'],
    [{ userId: 'u1', event: 'e', messageId: 'm\0' }, 'invalid messageId'],
  ])('%j is refused with the field named', (body, refusal) => {
    expect(refusals(parse('track', body))).toEqual([refusal]);
  });

  test('every missing field is named at once', () => {
    expect(refusals(parse('track', {}))).toEqual(['required userId', 'required event']);
  });

  test('a name of exactly 100 bytes is taken, counted after trimming', () => {
    expect(
      onlyOperation(parse('track', { userId: 'u1', event: ` ${'ü'.repeat(50)} ` })),
    ).toMatchObject({
      name: 'ü'.repeat(50),
    });
  });

  test('characters that cannot be stored are replaced in the name, with a warning', () => {
    const parsed = parse('track', { userId: 'u1', event: 'a\0b' });
    expect(operationOf(parsed, 'event.track').name).toBe('a\ufffdb');
    expect(warnings(parsed)).toEqual(['characters_replaced event']);
  });

  test('date-times among the properties become Unix seconds', () => {
    const parsed = parse('track', {
      userId: 'u1',
      event: 'e',
      properties: { a: { b: ['2024-05-01T00:00:00Z'] } },
    });
    expect(operationOf(parsed, 'event.track').data).toEqual({ a: { b: [1_714_521_600] } });
  });

  test('properties without a change are not copied', () => {
    const properties = { a: { b: [1, 'two', null, true] } };
    const parsed = parse('track', { userId: 'u1', event: 'e', properties });
    expect(operationOf(parsed, 'event.track').data).toBe(properties);
  });

  test('a ULID is one id in either letter case; any other id is exact', () => {
    const idOf = (messageId: unknown) =>
      operationOf(parse('track', { userId: 'u1', event: 'e', messageId }), 'event.track').eventId;
    expect(idOf('01arz3ndektsv4rrffq69g5fav')).toBe('01ARZ3NDEKTSV4RRFFQ69G5FAV');
    expect(idOf('abcdefghijklmnopqrstuvwxyz')).toBe('abcdefghijklmnopqrstuvwxyz');
    expect(idOf('ajs-next-1714559999-Ab')).toBe('ajs-next-1714559999-Ab');
    expect(idOf(12)).toBe('12');
    for (const absent of [undefined, null, '']) expect(idOf(absent)).toBe(MADE_ID);
  });
});

describe('the time of an event', () => {
  test('is corrected by the sender’s own clock if it has originalTimestamp and sentAt', () => {
    expect(
      occurredAt({
        originalTimestamp: '2030-01-01T00:00:00.000Z',
        sentAt: '2030-01-01T00:00:10.000Z',
        timestamp: '2020-01-01T00:00:00.000Z',
      }),
    ).toBe(RECEIVED_AT_MS - 10_000);
  });

  test('is the timestamp if originalTimestamp or sentAt is missing', () => {
    const timestamp = '2020-01-01T00:00:00.000Z';
    expect(occurredAt({ timestamp, sentAt: '2030-01-01T00:00:10Z' })).toBe(Date.parse(timestamp));
    expect(occurredAt({ timestamp, originalTimestamp: '2030-01-01T00:00:00Z' })).toBe(
      Date.parse(timestamp),
    );
  });

  test('is the timestamp if the correction comes out before 1970 or after 9999', () => {
    const timestamp = '2020-01-01T00:00:00.000Z';
    const [first, last] = ['1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z'];
    for (const [originalTimestamp, sentAt] of [
      [first, last],
      [last, first],
    ])
      expect(occurredAt({ timestamp, originalTimestamp, sentAt })).toBe(Date.parse(timestamp));
  });

  test('is the time of receipt if the call has no timestamp and no pair for the correction', () => {
    expect(occurredAt({})).toBe(RECEIVED_AT_MS);
    expect(occurredAt({ timestamp: null })).toBe(RECEIVED_AT_MS);
    expect(occurredAt({ originalTimestamp: '2030-01-01T00:00:00Z' })).toBe(RECEIVED_AT_MS);
  });

  test('is the time of receipt, with a warning, where the timestamp is none', () => {
    const parsed = parse('track', { userId: 'u1', event: 'e', timestamp: '2024-02-30T00:00:00Z' });
    expect(operationOf(parsed, 'event.track').occurredAtMs).toBe(RECEIVED_AT_MS);
    expect(warnings(parsed)).toEqual(['timestamp_invalid timestamp']);
  });

  test('an unreadable sentAt falls back to the timestamp, with a warning', () => {
    const times = {
      originalTimestamp: '2030-01-01T00:00:00Z',
      sentAt: 'now',
      timestamp: '2020-01-01T00:00:00Z',
    };
    const parsed = parse('track', { userId: 'u1', event: 'e', ...times });
    expect(operationOf(parsed, 'event.track').occurredAtMs).toBe(Date.parse(times.timestamp));
    expect(warnings(parsed)).toEqual(['timestamp_invalid sentAt']);
  });
});

describe('page and screen', () => {
  test.each(['page', 'screen'] as const)('%s is an event of that kind', (call) => {
    expect(
      onlyOperation(
        parse(call, { userId: 'u1', name: 'Home', properties: { url: 'https://x.example/' } }),
      ),
    ).toMatchObject({
      type: 'event.track',
      kind: call,
      name: 'Home',
      data: { url: 'https://x.example/' },
    });
  });

  test('is named by its URL if it has no name, else by its kind', () => {
    expect(
      onlyOperation(parse('page', { userId: 'u1', properties: { url: 'https://x.example/a' } })),
    ).toMatchObject({
      name: 'https://x.example/a',
    });
    expect(
      onlyOperation(
        parse('page', { userId: 'u1', context: { page: { url: 'https://x.example/b' } } }),
      ),
    ).toMatchObject({
      name: 'https://x.example/b',
    });
    expect(onlyOperation(parse('screen', { userId: 'u1', name: null }))).toMatchObject({
      name: 'screen',
    });
  });

  test('an address too long for a name loses its query there and nowhere else', () => {
    const url = `https://x.example/a?${'q'.repeat(3_000)}`;
    expect(onlyOperation(parse('page', { userId: 'u1', properties: { url } }))).toMatchObject({
      name: 'https://x.example/a',
      data: { url },
    });
  });

  test('needs somebody', () => {
    expect(refusals(parse('page', { name: 'Home' }))).toEqual(['required userId']);
    expect(refusals(parse('screen', { name: 'Home' }))).toEqual(['required userId']);
  });

  test('a name may be as long as an address, and no longer', () => {
    expect(parse('page', { userId: 'u1', name: 'x'.repeat(2_000) }).operations).toHaveLength(1);
    expect(refusals(parse('page', { userId: 'u1', name: 'x'.repeat(2_001) }))).toEqual([
      'too_long name',
    ]);
  });
});

describe('alias', () => {
  test('merges the former id into the present one', () => {
    expect(
      onlyOperation(parse('alias', { userId: 'ada@example.com', previousId: 'old' })),
    ).toStrictEqual({
      ...BASE,
      type: 'person.merge',
      primary: { kind: 'email', value: 'ada@example.com' },
      secondary: { kind: 'id', value: 'old' },
      isAlias: true,
    });
  });

  test('merges the visitor into the user if the former id is the anonymous id of the call', () => {
    const call = { userId: 'u1', anonymousId: 'a1', previousId: 'a1' };
    expect(onlyOperation(parse('alias', call))).toMatchObject({
      primary: { kind: 'id', value: 'u1' },
      secondary: { kind: 'anonymous_id', value: 'a1' },
    });
    expect(onlyOperation(parse('alias', { ...call, previousId: 'old' }))).toMatchObject({
      secondary: { kind: 'id', value: 'old' },
    });
  });

  test('takes the anonymous id for the present one if there is no userId', () => {
    expect(onlyOperation(parse('alias', { anonymousId: 'a1', previousId: 'old' }))).toMatchObject({
      primary: { kind: 'anonymous_id', value: 'a1' },
    });
  });

  test.each([undefined, null, '', ' '])(
    'without a former id (%j) means the visitor who calls, which strict mode refuses',
    (previousId) => {
      const call = { userId: 'u1', anonymousId: 'a1', previousId };
      const parsed = parse('alias', call);
      expect(operationOf(parsed, 'person.merge')).toMatchObject({
        primary: { kind: 'id', value: 'u1' },
        secondary: { kind: 'anonymous_id', value: 'a1' },
        isAlias: true,
      });
      expect(warnings(parsed)).toEqual(['previous_id_missing previousId']);
      const inBatch = parse('batch', { batch: [{ type: 'alias', ...call }] });
      expect(inBatch.operations).toEqual(parsed.operations);
      expect(refusals(parsePipelines('alias', call, { ...CONTEXT, isStrict: true }))).toEqual([
        'required previousId',
      ]);
    },
  );

  test('needs both', () => {
    expect(refusals(parse('alias', { previousId: 'old' }))).toEqual(['required userId']);
    expect(refusals(parse('alias', { userId: 'u1' }))).toEqual(['required previousId']);
    expect(refusals(parse('alias', { anonymousId: 'a1' }))).toEqual(['required previousId']);
  });
});
