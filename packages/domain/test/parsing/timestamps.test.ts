import { CallDraft } from '@sluice/domain/parsing/parse';
import { parseIsoMs, readInstantMs } from '@sluice/domain/parsing/timestamps';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CONTEXT } from '../support/parsing.ts';

function read(value: unknown): { ms: number | undefined; codes: string[] } {
  const draft = new CallDraft(CONTEXT, 'track');
  const ms = readInstantMs(draft, value, 'timestamp', 'the time of receipt is used');
  return { ms, codes: draft.issues.map((issue) => issue.code) };
}

describe('ISO 8601', () => {
  test('every millisecond of every year is read back as it was written', () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date('0001-01-01'),
          max: new Date('9999-12-31T23:59:59.999Z'),
          noInvalidDate: true,
        }),
        (date) => {
          expect(parseIsoMs(date.toISOString(), true)).toBe(date.getTime());
        },
      ),
    );
  });

  test('an offset names the same instant in each of its three spellings', () => {
    const expected = Date.parse('2024-05-01T08:20:30.123Z');
    expect(parseIsoMs('2024-05-01T10:20:30.123+02:00', true)).toBe(expected);
    expect(parseIsoMs('2024-05-01T10:20:30.123+0200', true)).toBe(expected);
    expect(parseIsoMs('2024-05-01T10:20:30.123+02', true)).toBe(expected);
    expect(parseIsoMs('2024-05-01T02:50:30.123-05:30', true)).toBe(expected);
  });

  test('digits beyond the millisecond are cut, missing ones are zero', () => {
    expect(parseIsoMs('2024-05-01T00:00:00.123999999Z', true)).toBe(
      Date.parse('2024-05-01T00:00:00.123Z'),
    );
    expect(parseIsoMs('2024-05-01T00:00:00.1Z', true)).toBe(Date.parse('2024-05-01T00:00:00.100Z'));
    expect(parseIsoMs('2024-05-01T00:00Z', true)).toBe(Date.parse('2024-05-01T00:00:00Z'));
  });

  test.each([
    '2024-02-30T00:00:00Z',
    '2023-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-10T00:00:00Z',
    '2024-01-00T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T23:60:00Z',
    '2024-01-01T23:59:60Z',
    '0000-01-01T00:00:00Z',
  ])('%s does not exist and is not read', (text) => {
    expect(parseIsoMs(text, false)).toBeUndefined();
  });

  test.each(['2000-02-29T00:00:00Z', '2024-02-29T00:00:00Z'])(
    '%s is a leap day and is read',
    (text) => {
      expect(parseIsoMs(text, true)).toBe(Date.parse(text));
    },
  );

  test.each([
    '',
    '2024-05-01T10:20:30.Z',
    '2024-05-01T10:20:30.1234567890Z',
    '2024-05-01T10:20:30ZZ',
    '2024-05-01T10:20:30+2',
    '2024-05-01T10:20:30+02:0',
    '2024-05-01T10:20:30+24:00',
    '2024-05-01T1:20:30Z',
    '2024-5-01T10:20:30Z',
    '٢٠٢٤-05-01T10:20:30Z',
    '20240501T102030Z',
    'order 2024-05-01',
    '2024-05-01T10:20:30 Z',
  ])('%j is not ISO 8601 and is not read', (text) => {
    expect(parseIsoMs(text, false)).toBeUndefined();
  });

  test('a date alone and a time without a zone name no instant, but a timestamp field takes them as UTC', () => {
    for (const text of ['2024-05-01', '2024-05-01T10:20:30', '2024-05-01 10:20:30+00:00']) {
      expect(parseIsoMs(text, true)).toBeUndefined();
      expect(parseIsoMs(text, false)).toBe(
        Date.parse(text.includes('+') || text.length === 10 ? text : `${text}Z`),
      );
    }
  });

  test('no text makes it throw or gives a number that is none', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^[-\d:TZ.+ ]{0,36}$/)),
        fc.boolean(),
        (text, mustBeInstant) => {
          const ms = parseIsoMs(text, mustBeInstant);
          expect(ms === undefined || Number.isSafeInteger(ms)).toBe(true);
        },
      ),
    );
  });
});

describe('a timestamp field', () => {
  test('reads Unix seconds as number and as text, with a fraction to the millisecond', () => {
    expect(read(1_714_559_999)).toEqual({ ms: 1_714_559_999_000, codes: [] });
    expect(read('1714559999')).toEqual({ ms: 1_714_559_999_000, codes: [] });
    expect(read(1_714_559_999.25)).toEqual({ ms: 1_714_559_999_250, codes: [] });
    expect(read(0)).toEqual({ ms: 0, codes: [] });
  });

  test('takes 1e12 and more for milliseconds, and says so', () => {
    expect(read(999_999_999_999)).toEqual({ ms: undefined, codes: ['timestamp_invalid'] });
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
    for (const value of [undefined, null, ''])
      expect(read(value)).toEqual({ ms: undefined, codes: [] });
  });

  test.each([
    ['a date that does not exist', '2024-02-30T00:00:00Z'],
    ['a time before 1970', -1],
    ['a date before 1970', '1969-12-31T23:59:59Z'],
    ['microseconds', 1_714_559_999_000_000],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a boolean', true],
    ['an object', {}],
    ['words', 'yesterday'],
    ['a blank', ' '],
    ['a hexadecimal number', '0x10'],
  ])('%s is a warning and no time, never NaN', (_, value) => {
    expect(read(value)).toEqual({ ms: undefined, codes: ['timestamp_invalid'] });
  });
});
