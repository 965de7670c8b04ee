import { hasIsoForm, parseIsoMs } from '@sluice/domain/value-rules/iso-instant';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

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
    '2024-01-01T24:00:01Z',
    '2024-01-01T24:01:00Z',
    '2024-01-01T24:00:00.001Z',
    '20240230T000000Z',
    '2024-01-01T23:60:00Z',
    '2024-01-01T23:59:61Z',
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
    '2024-05-01T10:20:30ZZ',
    '2024-05-01T10:20:30+2',
    '2024-05-01T10:20:30+02:0',
    '2024-05-01T10:20:30+24:00',
    '2024-05-01T1:20:30Z',
    '2024-5-01T10:20:30Z',
    '٢٠٢٤-05-01T10:20:30Z',
    '20240501',
    '2024-05-01T102030Z',
    '20240501T10:20:30Z',
    '20240501 102030Z',
    `2024-05-01T10:20:30.${'0'.repeat(100)}Z`,
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

  test('every text gives a safe integer or undefined, and never an error', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^[-\d:TZtz.,+ ]{0,40}$/)),
        fc.boolean(),
        (text, mustBeInstant) => {
          const ms = parseIsoMs(text, mustBeInstant);
          expect(ms === undefined || Number.isSafeInteger(ms)).toBe(true);
        },
      ),
    );
  });

  test.each([
    ['2024-05-01t10:20:30z', '2024-05-01T10:20:30Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'],
    ['2016-12-31T23:59:60.75Z', '2017-01-01T00:00:00Z'],
    ['2017-01-01T00:59:60+01:00', '2017-01-01T00:00:00Z'],
    ['2024-05-01T24:00:00Z', '2024-05-02T00:00:00Z'],
    ['2024-12-31T24:00Z', '2025-01-01T00:00:00Z'],
    ['2024-05-01T24:00:00.000+02:00', '2024-05-01T22:00:00Z'],
    ['2024-05-01T10:20:30,5Z', '2024-05-01T10:20:30.500Z'],
    ['20240501T102030Z', '2024-05-01T10:20:30Z'],
    ['20240501T1020Z', '2024-05-01T10:20:00Z'],
    ['20240501T102030.25+0200', '2024-05-01T08:20:30.250Z'],
    ['20240501t102030,25-05:30', '2024-05-01T15:50:30.250Z'],
    ['2024-05-01T10:20:30.12345678901234567890Z', '2024-05-01T10:20:30.123Z'],
  ])('%s is the instant that its form means', (text, instant) => {
    expect(parseIsoMs(text, true)).toBe(Date.parse(instant));
    expect(hasIsoForm(text)).toBe(true);
  });
});
