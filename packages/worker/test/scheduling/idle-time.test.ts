import { expect, test } from 'vitest';
import { IdleTime } from '../../src/scheduling/idle-time.ts';

test('time is short while the process has next to no idle time, and not a moment longer', () => {
  let nowMs = 0;
  let idleMs = 0;
  const idleTime = new IdleTime({ idleMs: () => idleMs, monotonicNow: () => nowMs });
  const pass = (ms: number, idlePart: number): boolean => {
    nowMs += ms;
    idleMs += ms * idlePart;
    return idleTime.isShort();
  };
  expect(idleTime.isShort()).toBe(false);
  expect(pass(20, 0.1)).toBe(true);
  // Too early for another look.
  expect(pass(19, 1)).toBe(true);
  expect(pass(1, 1)).toBe(false);
  expect(pass(20, 0.2)).toBe(true);
  expect(pass(20, 0.3)).toBe(false);
  expect(idleTime.totalMs()).toBeCloseTo(2 + 20 + 4 + 6);
});
