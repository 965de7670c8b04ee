import { beforeEach, expect, test } from 'vitest';
import { DatabaseClock } from '../../src/process/database-clock.ts';

const HOUR_MS = 3_600_000;

let nowMs: number;
let monotonicMs: number;
let clock: DatabaseClock;
beforeEach(() => {
  nowMs = 10_000_000;
  monotonicMs = 500.5;
  clock = new DatabaseClock({ now: () => nowMs, monotonicNow: () => monotonicMs });
});
const pass = (ms: number): void => {
  nowMs += ms;
  monotonicMs += ms;
};

test.each([-HOUR_MS, HOUR_MS])(
  'a clock that is set by %i ms does not change the time, before and after the next measurement',
  (setByMs) => {
    clock.noticeDifference({ aheadMs: 0, uncertaintyMs: 1 });
    nowMs += setByMs;
    pass(1_000);
    expect(clock.now()).toBe(10_001_000);
    clock.noticeDifference({ aheadMs: setByMs, uncertaintyMs: 1 });
    pass(1_000);
    expect(clock.now()).toBe(10_002_000);
  },
);

test.each([-HOUR_MS, HOUR_MS])(
  'a clock that is %i ms ahead is Postgres’ time once it is measured',
  (aheadMs) => {
    expect(clock.now()).toBe(10_000_000);
    clock.noticeDifference({ aheadMs, uncertaintyMs: 20 });
    expect(clock.now()).toBe(10_000_000 - aheadMs);
  },
);

test('small, uncertain or invalid clock differences do not make the time jump', () => {
  clock.noticeDifference({ aheadMs: 49, uncertaintyMs: 1 });
  expect(clock.now()).toBe(10_000_000);
  clock.noticeDifference({ aheadMs: 5_000, uncertaintyMs: 1_300 });
  expect(clock.now()).toBe(10_000_000);
  clock.noticeDifference({ aheadMs: Number.NaN, uncertaintyMs: 1 });
  expect(clock.now()).toBe(10_000_000);
});

test('a machine that was suspended is right again at the next measurement', () => {
  nowMs += HOUR_MS;
  expect(clock.now()).toBe(10_000_000);
  clock.noticeDifference({ aheadMs: 0, uncertaintyMs: 1 });
  expect(clock.now()).toBe(10_000_000 + HOUR_MS);
});
