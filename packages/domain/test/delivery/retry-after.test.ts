/** `Retry-After` in the forms of RFC 9110, and in other forms. */
import { describe, expect, test } from 'vitest';
import { retryAfterMs } from '../../src/delivery/retry-after.ts';

const NOW_MS = Date.UTC(2026, 10, 26, 12);
const headOf = (value: string) => `HTTP/1.1 503 Busy\nServer: a\nRetry-After: ${value}\nDate: b`;

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120],
    ['  7\t', 7],
    ['9'.repeat(400), 1_000_000_000],
    ['Thu, 26 Nov 2026 12:01:00 GMT', 60],
    ['thu, 26 nov 2026 12:01:00 gmt', 60],
    ['Thursday, 26-Nov-26 12:00:30 GMT', 30],
    ['Thu Nov 26 12:00:05 2026', 5],
    ['Thu, 26 Nov 2026 11:59:00 GMT', -60],
  ])('%j is so many seconds', (value, seconds) => {
    expect(retryAfterMs(headOf(value), NOW_MS)).toBe(NOW_MS + seconds * 1000);
  });

  test('a year of two digits is the nearest one that is at most fifty years ahead', () => {
    expect(retryAfterMs(headOf('Sunday, 06-Nov-94 08:49:37 GMT'), NOW_MS)).toBe(
      Date.UTC(1994, 10, 6, 8, 49, 37),
    );
    expect(retryAfterMs(headOf('Sun Nov  6 08:49:37 1994'), NOW_MS)).toBe(
      Date.UTC(1994, 10, 6, 8, 49, 37),
    );
  });

  test.each(['', 'soon', '-5', '1.5', '1e3', '5 seconds', '2026-11-26T12:01:00Z'])(
    '%j says nothing',
    (value) => {
      expect(retryAfterMs(headOf(value), NOW_MS)).toBeUndefined();
    },
  );

  test('is a whole field, in any letter case', () => {
    expect(retryAfterMs('HTTP/1.1 429 No\nretry-AFTER:3', NOW_MS)).toBe(NOW_MS + 3_000);
    expect(retryAfterMs('HTTP/1.1 429 No\nX-Retry-After: 3', NOW_MS)).toBeUndefined();
    expect(retryAfterMs('', NOW_MS)).toBeUndefined();
  });
});
