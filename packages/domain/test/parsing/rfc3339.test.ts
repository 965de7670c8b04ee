import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRfc3339Ms } from '../../src/parsing/rfc3339.ts';

test('any time is read back from its text', () => {
  const times = fc.date({
    min: new Date('1970-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(times, (time) => {
      expect(parseRfc3339Ms(time.toISOString(), 'down')).toBe(time.getTime());
    }),
  );
});

test.each([
  ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
  ['2026-03-01t12:00:00.5z', '2026-03-01T12:00:00.500Z'],
  ['2026-03-01 12:00:00+02:00', '2026-03-01T10:00:00.000Z'],
  ['2026-03-01T12:00:00-05:30', '2026-03-01T17:30:00.000Z'],
  ['2026-03-01T12:00:00 02:00', '2026-03-01T10:00:00.000Z'],
  ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999-00:00', '9999-12-31T23:59:59.999Z'],
  ['0001-01-01T00:01:00+00:01', '0001-01-01T00:00:00.000Z'],
])('%s is %s', (text, expected) => {
  expect(new Date(parseRfc3339Ms(text, 'down') ?? Number.NaN).toISOString()).toBe(expected);
});

test.each([
  '',
  '2026-03-01',
  '2026-03-01T12:00:00',
  '2026-03-01T12:00Z',
  '2026-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-04-31T00:00:00Z',
  '2026-03-01T24:00:00Z',
  '2026-03-01T12:60:00Z',
  '2026-03-01T12:00:00+0200',
  '2026-03-01T12:00:00+24:00',
  // In UTC a year of five digits.
  '9999-12-31T23:59:59-00:01',
  '1772366400',
  '2026-03-01T12:00:00Z ',
  '٢٠٢٦-03-01T12:00:00Z',
])('%j is none', (text) => {
  expect(parseRfc3339Ms(text, 'down')).toBeUndefined();
});

test('digits beyond the millisecond are rounded into the bounds', () => {
  const ms = Date.parse('2026-03-01T12:00:00.123Z');
  expect(parseRfc3339Ms('2026-03-01T12:00:00.1234Z', 'up')).toBe(ms + 1);
  expect(parseRfc3339Ms('2026-03-01T12:00:00.1234Z', 'down')).toBe(ms);
  expect(parseRfc3339Ms('2026-03-01T12:00:00.123000Z', 'up')).toBe(ms);
  expect(parseRfc3339Ms('9999-12-31T23:59:59.9999Z', 'up')).toBeUndefined();
});
