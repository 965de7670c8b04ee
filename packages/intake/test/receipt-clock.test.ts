/** The time of receipt: the machine's, or Postgres' if the machine's is wrong. */
import { beforeEach, expect, test } from 'vitest';
import { ReceiptClock } from '../src/receipt-clock.ts';

let nowMs: number;
let monotonicMs: number;
let clock: ReceiptClock;
beforeEach(() => {
  nowMs = 1_000_000;
  monotonicMs = 500;
  clock = new ReceiptClock({ now: () => nowMs, monotonicNow: () => monotonicMs });
});
const pass = (ms: number): void => {
  nowMs += ms;
  monotonicMs += ms;
};

test.each([60_000, -60_000, 51, -51])('a clock that is %i ms ahead is corrected', (aheadMs) => {
  clock.noticeDifference({ aheadMs, uncertaintyMs: 1 });
  pass(10);
  expect(clock.now()).toBe(1_000_010 - aheadMs);
});

test.each([
  [49, 1],
  [-49, 1],
  [300, 80],
])('one that seems %i ms ahead, give or take %i ms, is believed', (aheadMs, uncertaintyMs) => {
  clock.noticeDifference({ aheadMs, uncertaintyMs });
  expect(clock.now()).toBe(1_000_000);
});

test('setting a corrected clock does not move the time, and the clock is believed again once it is right', () => {
  clock.noticeDifference({ aheadMs: 60_000, uncertaintyMs: 1 });
  expect(clock.now()).toBe(940_000);
  nowMs -= 60_000;
  pass(5);
  expect(clock.now()).toBe(940_005);
  clock.noticeDifference({ aheadMs: 0, uncertaintyMs: 1 });
  expect(clock.now()).toBe(nowMs);
});

test('another measurement lets the time stand, not go back; a clock that was wrong by more is put right', () => {
  clock.noticeDifference({ aheadMs: 60_000, uncertaintyMs: 1 });
  const before = clock.now();
  clock.noticeDifference({ aheadMs: 60_003, uncertaintyMs: 1 });
  expect(clock.now()).toBe(before);
  pass(4);
  expect(clock.now()).toBe(before + 1);
  clock.noticeDifference({ aheadMs: 70_000, uncertaintyMs: 1 });
  expect(clock.now()).toBe(before + 4 - 10_000);
});

// A swallowed failure left the log without the reason for an outage, if no other statement was under way.
test('a measurement that fails is reported, and those before it count', async () => {
  const away = new Error('Postgres is away');
  let count = 0;
  const measured = clock.measure(() =>
    count++ === 0 ? Promise.resolve({ aheadMs: 60_000, uncertaintyMs: 1 }) : Promise.reject(away),
  );
  await expect(measured).rejects.toBe(away);
  expect(clock.now()).toBe(940_000);
});

test('a call that comes after an answer has a later millisecond than the answered calls', () => {
  const before = clock.now();
  expect(clock.now()).toBe(before);
  clock.answered();
  expect(clock.now()).toBe(before + 1);
  expect(clock.now()).toBe(before + 1);
  pass(5);
  expect(clock.now()).toBe(before + 5);
});

test('however many flushes are answered in a millisecond, the time runs ahead by two at most', () => {
  const before = clock.now();
  for (let count = 0; count < 50; count++) {
    clock.answered();
    expect(clock.now() - before).toBeLessThanOrEqual(2);
  }
  pass(3);
  expect(clock.now()).toBe(before + 3);
});
