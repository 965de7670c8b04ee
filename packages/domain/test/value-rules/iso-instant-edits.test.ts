/**
 * Texts that are nearly ISO 8601, and every day of the calendar.
 *
 * The expected value comes from `Date` and from expressions of the test's own.
 */
import { describe, expect, test } from 'vitest';
import {
  hasIsoForm,
  INSTANT_MS_MAX,
  isInstantMs,
  parseIsoMs,
} from '../../src/value-rules/iso-instant.ts';

const ZONE = '(?<zone>[Zz]|(?<sign>[+-])(?<offHour>\\d\\d)(?::?(?<offMinute>\\d\\d))?)?';
const EXTENDED = new RegExp(
  `^(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)(?:(?<mark>[Tt ])(?<hour>\\d\\d):(?<minute>\\d\\d)(?::(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?${ZONE})?$`,
);
const BASIC = new RegExp(
  `^(?<year>\\d{4})(?<month>\\d\\d)(?<day>\\d\\d)(?<mark>[Tt])(?<hour>\\d\\d)(?<minute>\\d\\d)(?:(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?${ZONE}$`,
);

function expectedMs(text: string, mustBeInstant: boolean): number | undefined {
  const parts = (EXTENDED.exec(text) ?? BASIC.exec(text))?.groups;
  if (!parts || text.length > 64) return undefined;
  if (mustBeInstant && (parts['zone'] === undefined || parts['mark'] === ' ')) return undefined;
  const number = (name: string): number => Number(parts[name] ?? 0);
  const [year, month, day] = [number('year'), number('month'), number('day')];
  const [hour, minute, second] = [number('hour'), number('minute'), number('second')];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (year === 0 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  if (hour > 24 || minute > 59 || second > 60) return undefined;
  if (hour === 24 && (minute > 0 || second > 0 || number('fraction') > 0)) return undefined;
  if (number('offHour') > 23 || number('offMinute') > 59) return undefined;
  const milliseconds =
    second === 60 ? 0 : Number((parts['fraction'] ?? '').padEnd(3, '0').slice(0, 3));
  const offsetMinutes = number('offHour') * 60 + number('offMinute');
  return (
    date.getTime() +
    ((hour * 60 + minute) * 60 + second) * 1_000 +
    milliseconds -
    (parts['sign'] === '-' ? -offsetMinutes : offsetMinutes) * 60_000
  );
}

/** @returns the texts that are read another way than `Date` reads them. */
const wrong = (texts: readonly string[]): string[] =>
  texts.filter((text) =>
    [true, false].some(
      (mustBeInstant) => parseIsoMs(text, mustBeInstant) !== expectedMs(text, mustBeInstant),
    ),
  );

const ASCII = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index));

describe.each([
  '2024-05-01',
  '2024-05-01T10:20Z',
  '2024-05-01 10:20:30',
  '2023-12-31T23:59:59.090+23:59',
  '1999-10-19T09:09:60.5-09:30',
  '2000-02-29t24:00:00,0000z',
  '0001-01-01T00:00:00-01',
  '20240501T1020',
  '20240501T102030.1234Z',
  '19991231t235959,9+0059',
  '2024-05-01T10:20:30.123456789012345678901234567890123456789012Z',
])('%s', (text) => {
  const places = Array.from({ length: text.length + 1 }, (_, place) => place);

  test('with one character in the place of another is read if that is a time too', () => {
    expect(
      wrong(
        places.flatMap((at) => ASCII.map((one) => text.slice(0, at) + one + text.slice(at + 1))),
      ),
    ).toEqual([]);
  });

  test('with a character more or less, or cut, is read if that is a time too', () => {
    expect(
      wrong(places.flatMap((at) => ASCII.map((one) => text.slice(0, at) + one + text.slice(at)))),
    ).toEqual([]);
    expect(
      wrong(places.flatMap((at) => [text.slice(0, at), text.slice(0, at) + text.slice(at + 1)])),
    ).toEqual([]);
  });
});

test('each day of each month is read if the calendar has it, in years of every kind', () => {
  const two = (number: number): string => String(number).padStart(2, '0');
  const days = [1896, 1900, 1970, 2000, 2023, 2024, 2100, 9999].flatMap((year) =>
    Array.from({ length: 13 * 32 }, (_, index) => {
      const [month, day] = [two(Math.floor(index / 32)), two(index % 32)];
      return [`${year}-${month}-${day}T01:02:03Z`, `${year}${month}${day}T010203Z`];
    }).flat(),
  );
  expect(wrong(days)).toEqual([]);
  const years = Array.from({ length: 9_999 }, (_, index) => String(index + 1).padStart(4, '0'));
  const ends = ['01-01', '02-28', '02-29', '03-01', '12-31'];
  expect(wrong(years.flatMap((year) => ends.map((end) => `${year}-${end}`)))).toEqual([]);
});

test('a text of 64 characters is read, and a longer one is neither read nor called a time', () => {
  const ofLength = (length: number): string => `${'2024-05-01T10:20:30.'.padEnd(length - 1, '5')}Z`;
  expect(parseIsoMs(ofLength(64), true)).toBe(Date.parse('2024-05-01T10:20:30.555Z'));
  expect(hasIsoForm(ofLength(64))).toBe(true);
  expect(parseIsoMs(ofLength(65), true)).toBeUndefined();
  expect(hasIsoForm(ofLength(65))).toBe(false);
});

test.each([
  [-1, false],
  [0, true],
  [1, true],
  [Date.UTC(9999, 11, 31, 23, 59, 59, 999), true],
  [Date.UTC(9999, 11, 31, 23, 59, 59, 999) + 1, false],
  [NaN, false],
])('%d is within the years 1970 to 9999: %j', (ms, expected) => {
  expect(isInstantMs(ms)).toBe(expected);
  expect(isInstantMs(INSTANT_MS_MAX)).toBe(true);
});

test.each(['2024-02-30', '2024-13-01T25:61:61Z', '20240230T996060.5+9999'])(
  '%s has the form of a time, but names a day or an hour that does not exist',
  (text) => {
    expect(hasIsoForm(text)).toBe(true);
    expect(parseIsoMs(text, false)).toBeUndefined();
  },
);
test.each(['', '2024', 'May 1st', '2024-05-01T10', '20240501'])(
  '%j lacks the form of a time',
  (text) => {
    expect(hasIsoForm(text)).toBe(false);
  },
);
