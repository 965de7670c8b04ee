import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import { CONTEXT, operationOf, RECEIVED_AT_MS, refusals, warnings } from '../support/parsing.ts';

const HOUR_MS = 3_600_000;
const iso = (ms: number) => new Date(ms).toISOString();
const track = (times: object) =>
  parsePipelines('track', { userId: 'u', event: 'e', ...times }, CONTEXT);
const occurred = (times: object) => operationOf(track(times), 'event.track').occurredAtMs;

describe('a client whose clock is wrong', () => {
  test.each([
    ['ahead by an hour', HOUR_MS],
    ['behind by an hour', -HOUR_MS],
    ['ahead by just a second', 1_000],
    ['behind by just a day', -24 * HOUR_MS],
  ])('%s is corrected by the error of its clock', (_, aheadMs) => {
    const sentAtMs = RECEIVED_AT_MS + aheadMs;
    const times = { timestamp: iso(sentAtMs - 5_000), sentAt: iso(sentAtMs) };
    expect(occurred(times)).toBe(RECEIVED_AT_MS - 5_000);
  });

  test('a difference below a second or above a day is not corrected', () => {
    const timestamp = iso(RECEIVED_AT_MS - 5_000);
    for (const offMs of [0, 999, -999, 24 * HOUR_MS + 1, -24 * HOUR_MS - 1, 30 * 24 * HOUR_MS])
      expect(occurred({ timestamp, sentAt: iso(RECEIVED_AT_MS + offMs) })).toBe(
        RECEIVED_AT_MS - 5_000,
      );
  });

  test('a timestamp that was back-dated on purpose is moved, not replaced', () => {
    const sentAt = iso(RECEIVED_AT_MS - 60_000);
    expect(occurred({ timestamp: '2023-01-01T00:00:00.000Z', sentAt })).toBe(
      Date.parse('2023-01-01T00:01:00.000Z'),
    );
  });

  test('sentAt of the item goes before the batch’s, and an empty one is ignored', () => {
    const timestamp = iso(RECEIVED_AT_MS - 5_000);
    const occurredInBatch = (sentAt: unknown) => {
      const item = { type: 'track', userId: 'u', event: 'e', timestamp, sentAt };
      const batch = { batch: [item], sentAt: iso(RECEIVED_AT_MS - HOUR_MS) };
      return operationOf(parsePipelines('batch', batch, CONTEXT), 'event.track').occurredAtMs;
    };
    for (const absent of [undefined, null, '', ' '])
      expect(occurredInBatch(absent)).toBe(RECEIVED_AT_MS - 5_000 + HOUR_MS);
    expect(occurredInBatch(iso(RECEIVED_AT_MS))).toBe(RECEIVED_AT_MS - 5_000);
  });

  test('without a timestamp it is the time of receipt, with any sentAt', () => {
    expect(occurred({ sentAt: iso(RECEIVED_AT_MS - HOUR_MS) })).toBe(RECEIVED_AT_MS);
    expect(occurred({ sentAt: 'nonsense' })).toBe(RECEIVED_AT_MS);
  });

  test('originalTimestamp goes before timestamp and has no bounds: both were counted from one clock', () => {
    const times = { originalTimestamp: '1999-12-31T23:59:00Z', sentAt: '2000-01-01T00:00:00Z' };
    expect(occurred({ ...times, timestamp: iso(RECEIVED_AT_MS) })).toBe(RECEIVED_AT_MS - 60_000);
  });

  test.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1900', 0],
    ['1972-01-01T00:00:00Z', 5_000],
    ['2060-01-01T00:00:00Z', 5_000],
  ])(
    'an originalTimestamp of %s is no time: timestamp is, corrected',
    (originalTimestamp, offMs) => {
      const sentAt = iso(RECEIVED_AT_MS - offMs);
      const timestamp = iso(RECEIVED_AT_MS - HOUR_MS);
      const parsed = track({ originalTimestamp, timestamp, sentAt });
      expect(warnings(parsed)).toHaveLength(1);
      expect(warnings(parsed)[0]).toMatch(/ originalTimestamp$/);
      expect(operationOf(parsed, 'event.track').occurredAtMs).toBe(
        RECEIVED_AT_MS - HOUR_MS + offMs,
      );
    },
  );

  test('a correction that leads out of the bounds of times is not made', () => {
    const last = '2025-05-01T12:00:00.000Z';
    const sentAt = iso(RECEIVED_AT_MS - HOUR_MS);
    expect(occurred({ timestamp: last, sentAt })).toBe(Date.parse(last));
    const first = '1973-03-03T09:46:40.000Z';
    expect(occurred({ timestamp: first, sentAt: iso(RECEIVED_AT_MS + HOUR_MS) })).toBe(
      Date.parse(first),
    );
  });

  test.each([
    ['identify', { userId: 'u' }],
    ['group', { userId: 'u', groupId: 'g' }],
    ['alias', { userId: 'u', previousId: 'p' }],
    ['page', { userId: 'u' }],
    ['screen', { userId: 'u' }],
  ] as const)(
    'a timestamp of %s that is not a date is reported, and refused in strict mode',
    (call, body) => {
      const timed = { ...body, timestamp: 'yesterday' };
      expect(warnings(parsePipelines(call, timed, CONTEXT))).toEqual([
        'timestamp_invalid timestamp',
      ]);
      const strict = { ...CONTEXT, isStrict: true };
      expect(refusals(parsePipelines(call, timed, strict))).toEqual(['invalid timestamp']);
      const item = { batch: [{ ...timed, type: call }] };
      expect(refusals(parsePipelines('batch', item, strict))).toEqual(['invalid timestamp']);
      expect(parsePipelines(call, { ...body, timestamp: '' }, strict).issues).toEqual([]);
    },
  );

  test('a sentAt that is not a date is reported, and refused in strict mode', () => {
    const times = { timestamp: iso(RECEIVED_AT_MS - 5_000), sentAt: 'now' };
    expect(warnings(track(times))).toEqual(['timestamp_invalid sentAt']);
    expect(occurred(times)).toBe(RECEIVED_AT_MS - 5_000);
    const strict = { ...CONTEXT, isStrict: true };
    const call = { userId: 'u', event: 'e', ...times };
    expect(refusals(parsePipelines('track', call, strict))).toEqual(['invalid sentAt']);
  });
});
