import { expect, test } from 'vitest';
import { TokenRate } from '../src/token-rate.ts';

test('each token has its own count, and a minute later a new one', () => {
  let nowMs = 1_000_000;
  const rate = new TokenRate(2, () => nowMs);
  expect(rate.take(1)).toEqual({ remaining: 1, resetSeconds: 60, isExceeded: false });
  nowMs += 30_500;
  expect(rate.take(1)).toEqual({ remaining: 0, resetSeconds: 30, isExceeded: false });
  expect(rate.take(1)).toEqual({ remaining: 0, resetSeconds: 30, isExceeded: true });
  expect(rate.take(2)).toEqual({ remaining: 1, resetSeconds: 30, isExceeded: false });
  nowMs += 29_499;
  expect(rate.take(1).isExceeded).toBe(true);
  nowMs += 1;
  expect(rate.take(1)).toEqual({ remaining: 1, resetSeconds: 60, isExceeded: false });
});
