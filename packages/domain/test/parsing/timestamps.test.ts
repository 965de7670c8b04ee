import { CallDraft } from '@sluice/domain/parsing/parse';
import { readInstantMs, readOrderingMs, readUnixSeconds } from '@sluice/domain/parsing/timestamps';
import { boundsOfEvents } from '@sluice/domain/value-rules/time-rule';
import { describe, expect, test } from 'vitest';
import type { Json } from '@sluice/domain/values/json';
import { CONTEXT, RECEIVED_AT_MS } from '../support/parsing.ts';

const NO_TIME = 'must be Unix seconds or a date-time such as 2024-05-01T10:20:30Z';

function read(value: unknown): { ms: number | undefined; codes: string[] } {
  const draft = new CallDraft(CONTEXT, 'track');
  const ms = readInstantMs(draft, value, 'timestamp', 'the time of receipt is used');
  return { ms, codes: draft.issues.map((issue) => issue.code) };
}

describe('a timestamp field', () => {
  test('reads Unix seconds as number and as text, with a fraction to the millisecond', () => {
    expect(read(1_714_559_999)).toEqual({ ms: 1_714_559_999_000, codes: [] });
    expect(read('1714559999')).toEqual({ ms: 1_714_559_999_000, codes: [] });
    expect(read(1_714_559_999.25)).toEqual({ ms: 1_714_559_999_250, codes: [] });
    expect(read(100_000_000)).toEqual({ ms: 100_000_000_000, codes: [] });
  });

  test('takes 1e12 and more for milliseconds, and reports it', () => {
    expect(read(999_999_999_999)).toEqual({ ms: undefined, codes: ['timestamp_out_of_range'] });
    expect(read(1e12)).toEqual({ ms: 1e12, codes: ['timestamp_in_milliseconds'] });
    expect(read('1714559999123')).toEqual({
      ms: 1_714_559_999_123,
      codes: ['timestamp_in_milliseconds'],
    });
  });

  test('reads ISO 8601 to the millisecond', () => {
    expect(read('2024-05-01T10:20:30.123Z')).toEqual({
      ms: Date.parse('2024-05-01T10:20:30.123Z'),
      codes: [],
    });
  });

  test('is absent when null or empty, without a word', () => {
    for (const value of [undefined, null, '', ' ', '\n'])
      expect(read(value)).toEqual({ ms: undefined, codes: [] });
  });

  test.each([
    ['a date that does not exist', '2024-02-30T00:00:00Z'],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a boolean', true],
    ['an object', {}],
    ['words', 'yesterday'],
    ['a hexadecimal number', '0x10'],
  ])('%s is a warning and no time, never NaN', (_, value) => {
    expect(read(value)).toEqual({ ms: undefined, codes: ['timestamp_invalid'] });
  });

  test.each([
    ['a date of eight digits', 20_261_120],
    ['a date of eight digits as text', '20261120'],
    ['the day of a spreadsheet', 45_981.5],
    ['a year', 2026],
    ['a time before 1970', -1],
    ['a date before 1970', '1969-12-31T23:59:59Z'],
    ['the last second before the bound', 99_999_999],
    ['microseconds', 1_714_559_999_000_000],
    ['fifty years ahead', '2074-05-01T12:00:00Z'],
    ['nanoseconds as text', '1714558830123456789'],
    ['nanoseconds', 1.7e18],
    ['a year and a millisecond ahead', '2025-05-01T12:00:00.501Z'],
    ['a year and a day ahead', RECEIVED_AT_MS + 366 * 86_400_000],
  ])('%s is of the right form and no time', (_, value) => {
    expect(read(value)).toEqual({ ms: undefined, codes: ['timestamp_out_of_range'] });
  });

  test('a year ahead is within the bounds', () => {
    expect(read('2025-05-01T12:00:00.500Z')).toEqual({
      ms: RECEIVED_AT_MS + 365 * 86_400_000,
      codes: [],
    });
    // No clock has that day in the year after a leap year.
    const leapDayMs = Date.parse('2024-02-29T12:00:00Z');
    expect(boundsOfEvents(leapDayMs).latestMs).toBe(Date.parse('2025-03-01T12:00:00Z'));
  });

  test('is refused in strict mode if it is not a date, but only reported if it is out of range', () => {
    const draft = new CallDraft({ ...CONTEXT, isStrict: true }, 'pipelines');
    readInstantMs(draft, 20_261_120, 'timestamp', 'the time of receipt is used');
    expect(draft.isRefused).toBe(false);
    readInstantMs(draft, 'yesterday', 'timestamp', 'the time of receipt is used');
    expect(draft.isRefused).toBe(true);
    expect(draft.issues.map(({ code, message }) => [code, message])).toEqual([
      [
        'timestamp_out_of_range',
        'timestamp means 1970-08-23T12:05:20Z as Unix seconds; a time here is from 1973-03-03T09:46:40Z to 2025-05-01T12:00:00Z; the time of receipt is used',
      ],
      ['invalid', `timestamp ${NO_TIME}`],
    ]);
  });

  test.each([
    ['2024-02-30T00:00:00Z', 'names a day, a time of day or a zone that does not exist'],
    ['2024-05-01T25:00:00Z', 'names a day, a time of day or a zone that does not exist'],
    ['2024-05-01T10:20:30+24:00', 'names a day, a time of day or a zone that does not exist'],
    ['20240501T102061Z', 'names a day, a time of day or a zone that does not exist'],
    // These are ISO 8601, of forms that are not read.
    ['2024-W18-3', NO_TIME],
    ['2024-05-01T10', NO_TIME],
    ['May 1st', NO_TIME],
    ['1.71456E+09', 'is rounded, as spreadsheets do in a narrow cell; give all of its digits'],
    ['1.7E+12', 'is rounded, as spreadsheets do in a narrow cell; give all of its digits'],
    [true, NO_TIME],
  ])('the message about %j is true of it', (value, problem) => {
    const draft = new CallDraft(CONTEXT, 'track');
    readInstantMs(draft, value, 'timestamp', 'it is left out');
    expect(draft.issues[0]?.message).toBe(`timestamp ${problem}; it is left out`);
  });
});

describe('a time that decides which write is the latest', () => {
  const readOrdering = (value: unknown) => {
    const draft = new CallDraft(CONTEXT, 'track');
    const ms = readOrderingMs(draft, value, '_timestamp');
    return { ms, codes: draft.issues.map(({ code }) => code) };
  };

  test('may be a day ahead and no more, or it would keep everybody from writing', () => {
    const nowSeconds = Math.floor(RECEIVED_AT_MS / 1_000);
    expect(readOrdering(nowSeconds + 86_400).codes).toEqual([]);
    for (const value of [nowSeconds + 86_401, '9999-12-31T23:59:59Z', 253_402_300_799])
      expect(readOrdering(value)).toEqual({ ms: undefined, codes: ['timestamp_out_of_range'] });
  });
});

describe('a time among the attributes', () => {
  const readAttribute = (value: Json) => {
    const draft = new CallDraft(CONTEXT, 'track');
    const stored = readUnixSeconds(draft, value, 'created_at');
    return { stored, codes: draft.issues.map(({ code }) => code) };
  };

  test.each([1_714_558_830_123, '1714558830123', ' 1714558830123\n'])(
    'milliseconds are converted with the same warning as number and as text: %j',
    (value) => {
      expect(readAttribute(value)).toEqual({
        stored: 1_714_558_830,
        codes: ['timestamp_in_milliseconds'],
      });
    },
  );

  test('a date-time of Pipelines becomes the number, also with blanks around it', () => {
    const draft = new CallDraft(CONTEXT, 'pipelines');
    expect(readUnixSeconds(draft, ' 2024-05-01t10:20:30z\n', 'traits.createdAt')).toBe(
      1_714_558_830,
    );
    expect(draft.issues).toEqual([]);
  });

  test('seconds as text become the number', () => {
    expect(readAttribute('1714558830')).toEqual({ stored: 1_714_558_830, codes: [] });
  });

  test('stays as it was sent, and is reported if it is not a time or is out of range', () => {
    for (const value of ['spring', true, { at: 1 }, ['2024']])
      expect(readAttribute(value)).toEqual({ stored: value, codes: ['value_not_understood'] });
    for (const value of ['2024-05-01', '2024-05-01T10:20:30Z', '', null])
      expect(readAttribute(value)).toEqual({ stored: value, codes: [] });
    expect(readAttribute(20_261_120)).toEqual({
      stored: 20_261_120,
      codes: ['timestamp_out_of_range'],
    });
  });
});
