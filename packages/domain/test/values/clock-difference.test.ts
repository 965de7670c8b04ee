import { expect, test } from 'vitest';
import {
  isEndBelieved,
  judgeClock,
  judgeGivingUp,
  requireUsableClock,
} from '../../src/values/clock-difference.ts';

const DAY_MS = 86_400_000;

test.each([
  [0, 1, 'alike'],
  [5_000, 1, 'alike'],
  [-5_000, 1, 'alike'],
  [5_001, 1, 'different'],
  [-5_001, 1, 'different'],
  [120_000, 1_000, 'different'],
  [120_001, 1_000, 'unusable'],
  [-2 * DAY_MS, 1, 'unusable'],
  // An answer that took long is no sign, however far it seems.
  [2 * DAY_MS, 1_001, 'unclear'],
] as const)('a clock %i ms ahead, known to %i ms, is %s', (aheadMs, uncertaintyMs, verdict) => {
  expect(judgeClock({ aheadMs, uncertaintyMs })).toBe(verdict);
});

test.each([
  [2 * DAY_MS, /172800 s ahead of the clock of Postgres.*Synchronize both machines/],
  [-2 * DAY_MS, /172800 s behind the clock of Postgres/],
])('a worker must not go by a clock %i ms ahead', (aheadMs, message) => {
  expect(() => requireUsableClock({ aheadMs, uncertaintyMs: 1 })).toThrow(
    expect.objectContaining({ code: 'CLOCK_WRONG', message: expect.stringMatching(message) }),
  );
});

test('a worker goes by a clock with an uncertain difference', () => {
  expect(() => requireUsableClock({ aheadMs: 2 * DAY_MS, uncertaintyMs: 2_000 })).not.toThrow();
});

const NOW_MS = 1_800_000_000_000;

test.each([
  ['a moment ago', -1_000, 0, 1, 'right'],
  ['two minutes ahead of Postgres', 0, 120_000, 0, 'right'],
  ['more than that', 0, 120_001, 0, 'ahead'],
  ['more than that, if the answer was not late', 0, 120_001, 2, 'unclear'],
  ['a little ahead, with an answer that was minutes late', 0, 5_000, 120_000, 'unclear'],
  ['days ahead', 0, 8 * DAY_MS, 1, 'ahead'],
  ['days ahead, by a clock that was set right since', 8 * DAY_MS, 0, 1, 'ahead'],
  // Too late is without loss.
  ['at an unknown time', 0, -8 * DAY_MS, 1, 'right'],
  ['when nobody knows', 0, Number.NaN, 1, 'unclear'],
] as const)(
  'a delivery whose days were over %s may be given up only if that is certain',
  (_, endedMs, aheadMs, uncertaintyMs, verdict) => {
    expect(judgeGivingUp({ aheadMs, uncertaintyMs }, NOW_MS + endedMs, NOW_MS)).toBe(verdict);
  },
);

test.each([
  [0, true],
  [-600_000, true],
  [-600_001, false],
  [8 * DAY_MS, true],
  [Number.NaN, false],
] as const)('an attempt that ended at %i ms from now may be kept: %s', (endedMs, isBelieved) => {
  expect(isEndBelieved(NOW_MS + endedMs, NOW_MS)).toBe(isBelieved);
});
