/** Verdicts on times, with the words that their sender reads. */
import { describe, expect, test } from 'vitest';
import {
  BOUNDS_OF_CLOCKS,
  boundsOfEvents,
  boundsOfOrdering,
  isOlderWrite,
  isWithinBounds,
  judgeTime,
} from '../../src/value-rules/time-rule.ts';

const NOW_MS = Date.parse('2024-05-01T12:00:00.500Z');
const DAY_MS = 86_400_000;
const EARLIEST_MS = Date.parse('1973-03-03T09:46:40Z');
const AT_MS = Date.parse('2024-05-01T10:20:30Z');

const read = (value: number) => ({ outcome: 'read', value });
const inMilliseconds = (value: number) => ({ ...read(value), change: 'milliseconds' });
const refused = (because: string, code = 'invalid') => ({ outcome: 'refused', code, because });
const NO_TIME = refused('must be Unix seconds or a date-time such as 2024-05-01T10:20:30Z');
const NO_SUCH_DAY = refused('names a day, a time of day or a zone that does not exist');
const ROUNDED = refused('is rounded, as spreadsheets do in a narrow cell; give all of its digits');
const outside = (means: string) =>
  refused(
    `means ${means}; a time here is from 1973-03-03T09:46:40Z to 2025-05-01T12:00:00Z`,
    'out_of_range',
  );

describe('the verdict on', () => {
  test.each<[string, unknown, object]>([
    ['no value', undefined, { outcome: 'absent' }],
    ['null', null, { outcome: 'absent' }],
    ['an empty text', '', { outcome: 'absent' }],
    ['a blank text', ' \n\u200b', { outcome: 'absent' }],
    ['a boolean', true, NO_TIME],
    ['an object', {}, NO_TIME],
    ['words', 'yesterday', NO_TIME],
    ['a form of ISO 8601 that is not read', '2024-W18-3', NO_TIME],
    ['no number', NaN, refused('is no number')],
    ['infinity', Infinity, refused('is no number')],
    ['seconds', 1_714_558_830, read(AT_MS)],
    ['seconds as a text', ' 1714558830\n', read(AT_MS)],
    ['seconds with a fraction', 1_714_558_830.1234, read(AT_MS + 123)],
    ['seconds with a fraction to round', 1_714_558_830.1236, read(AT_MS + 124)],
    ['milliseconds', AT_MS + 123, inMilliseconds(AT_MS + 123)],
    ['milliseconds with a fraction', AT_MS + 0.9, inMilliseconds(AT_MS)],
    ['milliseconds as a text', `${AT_MS}`, inMilliseconds(AT_MS)],
    ['the first milliseconds', 1e12, inMilliseconds(1e12)],
    ['a float as Go prints it', '1.71455883e+09', read(AT_MS)],
    ['all digits of a narrow cell', '1.714558830E+09', read(AT_MS)],
    ['some digits of a narrow cell', '1.71455883E+09', ROUNDED],
    ['one digit of a narrow cell', '9E+07', ROUNDED],
    ['ISO 8601', '2024-05-01T10:20:30Z', read(AT_MS)],
    ['ISO 8601 with blanks around it', ' 2024-05-01 10:20:30\n', read(AT_MS)],
    ['a date alone', '2024-05-01', read(Date.parse('2024-05-01T00:00:00Z'))],
    ['a day that does not exist', '2024-02-30T00:00:00Z', NO_SUCH_DAY],
  ])('%s', (_, value, verdict) => {
    expect(judgeTime(value, boundsOfEvents(NOW_MS))).toEqual(verdict);
  });

  test.each([
    ['2024-05-01 10:20:30 +0000 UTC', AT_MS],
    ['2024-05-01 10:20:30 UTC', AT_MS],
    ['2024-05-01 10:20:30 GMT', AT_MS],
    ['2024-05-01 12:20:30 +0200', AT_MS],
    ['2024-05-01 12:20:30.123456789 +0200 CEST', AT_MS + 123],
    ['2024-05-01 12:20:30 +0200 +02', AT_MS],
    ['2024-05-01 10:20:30.5 +0000 UTC m=+0.000000001', AT_MS + 500],
  ])('the printed time %s', (text, ms) => {
    expect(judgeTime(text, boundsOfEvents(NOW_MS))).toEqual(read(ms));
  });

  test.each([
    '2024-05-01 10:20:30 CEST',
    '2024-05-01 10:20:30 m=+0.000000001',
    '2024-02-30 10:20:30 +0000 UTC',
    'UTC',
  ])('the printed text %s, which names no instant', (text) => {
    expect(judgeTime(text, boundsOfEvents(NOW_MS))).toEqual(NO_TIME);
  });

  test.each<[string, unknown, object]>([
    ['a day as digits', 20_261_120, outside('1970-08-23T12:05:20Z as Unix seconds')],
    ['a day as a text of digits', '20261120', outside('1970-08-23T12:05:20Z as Unix seconds')],
    ['seconds before 1970', -1, outside('no year from 1970 to 9999 as Unix seconds')],
    ['microseconds', 1e15, outside('no year from 1970 to 9999 as Unix milliseconds')],
    ['a year ahead', NOW_MS + 366 * DAY_MS, outside('2025-05-02T12:00:00Z as Unix milliseconds')],
    ['ISO 8601 of old', '1973-03-03T09:46:39.999Z', outside('1973-03-03T09:46:39Z')],
    ['a printed time ahead', '2025-05-01 12:00:01 UTC', outside('2025-05-01T12:00:01Z')],
    ['the year 0001', '0001-01-01', outside('no year from 1970 to 9999')],
  ])('%s outside of the bounds', (_, value, verdict) => {
    expect(judgeTime(value, boundsOfEvents(NOW_MS))).toEqual(verdict);
  });
});

describe('the bounds', () => {
  test('of events reach from the first personal computers to the same day next year', () => {
    const ofNow = { earliestMs: EARLIEST_MS, latestMs: Date.parse('2025-05-01T12:00:00.500Z') };
    expect(boundsOfEvents(NOW_MS)).toEqual(ofNow);
    expect(boundsOfEvents(NOW_MS + DAY_MS)).toEqual({
      earliestMs: EARLIEST_MS,
      latestMs: ofNow.latestMs + DAY_MS,
    });
    expect(boundsOfEvents(NOW_MS)).toEqual(ofNow);
  });

  test('of times that order end a day ahead, and of clocks with the year 9999', () => {
    expect(boundsOfOrdering(NOW_MS)).toEqual({
      earliestMs: EARLIEST_MS,
      latestMs: NOW_MS + DAY_MS,
    });
    expect(BOUNDS_OF_CLOCKS).toEqual({
      earliestMs: 0,
      latestMs: Date.parse('9999-12-31T23:59:59.999Z'),
    });
  });

  test('belong to the times within', () => {
    const bounds = { earliestMs: 10, latestMs: 12 };
    expect([9, 10, 11, 12, 13].filter((ms) => isWithinBounds(ms, bounds))).toEqual([10, 11, 12]);
  });
});

test.each([
  ['without a time', undefined, NOW_MS, false],
  ['of a person without a time', NOW_MS, null, false],
  ['of before 1970, of a person without a time', -1, null, false],
  ['of an earlier time', NOW_MS - 1, NOW_MS, true],
  ['of the same time', NOW_MS, NOW_MS, false],
  ['of a later time', NOW_MS + 1, NOW_MS, false],
  ['of before a time of a day ahead', NOW_MS, NOW_MS + DAY_MS, true],
  ['of before a time too far ahead', NOW_MS, NOW_MS + DAY_MS + 1, false],
])('a write %s is older than the stored one: %j, %j, %j', (_, atMs, storedAtMs, expected) => {
  expect(isOlderWrite(atMs, storedAtMs, NOW_MS)).toBe(expected);
});
