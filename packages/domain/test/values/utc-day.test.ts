import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addDays,
  daysBetween,
  firstOfMonth,
  mondayOf,
  parseUtcDay,
  usageRange,
  utcDayOf,
} from '../../src/values/utc-day.ts';

const DAY_MS = 86_400_000;
const anyDay = fc
  .integer({ min: 0, max: Math.floor(Date.UTC(9990, 0, 1) / DAY_MS) })
  .map((days) => utcDayOf(days * DAY_MS));

test.each([
  ['2026-11-20', '2026-06-01'],
  ['2026-03-31', '2025-10-01'],
  ['2026-02-10', '2025-09-01'],
  ['2028-02-29', '2027-09-01'],
  ['2026-12-31', '2026-07-01'],
  ['2026-01-01', '2025-08-01'],
  ['2026-05-31', '2025-12-01'],
  ['2026-06-01', '2026-01-01'],
])(
  'I31: up to %s the default range begins on %s and has six whole calendar months',
  (end, start) => {
    expect(usageRange({ end }, '2030-01-01')).toEqual({ start, end });
  },
);

test('a missing or future end is today, and a range that begins in the future or after its end is refused', () => {
  const today = '2026-03-31';
  for (const end of [undefined, '2026-03-31', '2026-04-01', '9999-12-31'])
    expect(usageRange({ end }, today)).toEqual({ start: '2025-10-01', end: today });
  expect(usageRange({ start: today }, today)).toEqual({ start: today, end: today });
  expect(usageRange({ start: '2026-04-01', end: '2026-05-01' }, today)).toBeUndefined();
  expect(usageRange({ start: '2026-02-02', end: '2026-02-01' }, today)).toBeUndefined();
});

test.each([
  '',
  '2026-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-04-31',
  '2026-4-01',
  '20260401',
  '2026-04-01T00:00:00Z',
  ' 2026-04-01',
  '2026-04-01\n',
  '1969-12-31',
  '0000-01-01',
  '+002026-04-01',
  '٢٠٢٦-04-01',
])('%j is no day', (text) => {
  expect(parseUtcDay(text)).toBeUndefined();
});

test('I31: every day that exists is read, and belongs to each of its milliseconds', () => {
  fc.assert(
    fc.property(anyDay, fc.integer({ min: 0, max: DAY_MS - 1 }), (day, ms) => {
      expect(parseUtcDay(day)).toBe(day);
      expect(utcDayOf(Date.parse(`${day}T00:00:00.000Z`) + ms)).toBe(day);
    }),
  );
});

test('days are counted as the calendar has them', () => {
  fc.assert(
    fc.property(anyDay, fc.integer({ min: -800, max: 800 }), (day, count) => {
      const other = addDays(day, count);
      fc.pre(other.length === 10);
      expect(daysBetween(day, other)).toBe(count);
      const monday = mondayOf(day);
      expect(new Date(`${monday}T00:00:00Z`).getUTCDay()).toBe(1);
      expect(daysBetween(monday, day)).toBeLessThan(7);
      expect(daysBetween(monday, day)).toBeGreaterThanOrEqual(0);
    }),
  );
  expect(addDays('2028-02-28', 1)).toBe('2028-02-29');
  expect(addDays('2027-02-28', 1)).toBe('2027-03-01');
  expect(firstOfMonth('2026-01-31', -1)).toBe('2025-12-01');
  expect(firstOfMonth('2026-12-31', 1)).toBe('2027-01-01');
});
