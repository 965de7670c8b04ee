import type { ClockDifference } from '@sluice/domain/values/clock-difference';
import { expect, test } from 'vitest';
import { WorkerClock } from '../../src/process/worker-clock.ts';

const DAY_MS = 86_400_000;
const at = (aheadMs: number) => ({ aheadMs, uncertaintyMs: 1 });

/** Returns the given measurements, one after another. */
function createClock(...aheadMs: number[]) {
  const endings: unknown[] = [];
  const measured: ClockDifference[] = [];
  const time = { nowMs: 0, monotonicMs: 0 };
  const clock = new WorkerClock({
    onMeasured: (difference) => void measured.push(difference),
    measure: async () => at(aheadMs.shift() ?? Number.NaN),
    now: () => time.nowMs,
    monotonicNow: () => time.monotonicMs,
    fail: (error) => void endings.push(error),
  });
  return { clock, endings, measured, left: aheadMs, time };
}

const WRONG = expect.objectContaining({ code: 'CLOCK_WRONG' });

test('a worker ends if a second measurement also finds its clock wrong, not by one alone', async () => {
  const wrongTwice = createClock(DAY_MS);
  await wrongTwice.clock.watch(at(DAY_MS));
  expect(wrongTwice.endings).toEqual([WRONG]);

  const wrongOnce = createClock(0);
  await wrongOnce.clock.watch(at(DAY_MS));
  expect(wrongOnce.endings).toEqual([]);
  expect(wrongOnce.left).toEqual([]);
});

test('neither does one that starts, and a right clock is not measured twice', async () => {
  await expect(createClock(-DAY_MS, -DAY_MS).clock.require()).rejects.toEqual(WRONG);
  await createClock(DAY_MS, 0).clock.require();
  const right = createClock(0, DAY_MS);
  await right.clock.require();
  await right.clock.watch(at(5));
  expect(right.left).toEqual([DAY_MS]);
  // The times of rows are put right by each of them.
  expect(right.measured).toEqual([at(0), at(5)]);
});

test('a failure is written down without a question, unless the clock has jumped back since it was right', async () => {
  const { clock, endings, left, time } = createClock(0, -DAY_MS, -DAY_MS);
  await clock.require();
  time.nowMs += DAY_MS;
  time.monotonicMs += DAY_MS;
  await clock.confirmFailure(time.nowMs - 60_000);
  // A machine that slept: its clock goes on meanwhile, the other does not.
  time.nowMs += DAY_MS;
  await clock.confirmFailure(time.nowMs);
  expect(left).toHaveLength(2);
  time.nowMs -= 2 * DAY_MS;
  await expect(clock.confirmFailure(time.nowMs)).rejects.toEqual(WRONG);
  expect(endings).toEqual([WRONG]);
});

test('nor does a clock that was set right by days end the worker, or cost it a question each time', async () => {
  const { clock, endings, left, time } = createClock(0, 1_000);
  await clock.require();
  time.nowMs -= DAY_MS;
  await clock.confirmFailure(time.nowMs);
  await clock.confirmFailure(time.nowMs);
  expect(left).toEqual([]);
  expect(endings).toEqual([]);
});
