import { expect, test } from 'vitest';
import { WorkerClock } from '../src/worker-clock.ts';

const DAY_MS = 86_400_000;
const at = (aheadMs: number) => ({ aheadMs, uncertaintyMs: 1 });

/** Measures what is given, one after another. */
function createClock(...aheadMs: number[]) {
  const endings: unknown[] = [];
  const clock = new WorkerClock({
    measure: async () => at(aheadMs.shift() ?? Number.NaN),
    now: () => 0,
    fail: (error) => void endings.push(error),
  });
  return { clock, endings, left: aheadMs };
}

const WRONG = expect.objectContaining({ code: 'CLOCK_WRONG' });

test('a worker ends where a second measurement says too that its clock is wrong, not by one alone', async () => {
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
  await right.clock.watch(at(0));
  expect(right.left).toEqual([DAY_MS]);
});
