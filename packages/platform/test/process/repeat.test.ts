import { afterEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../src/process/logger.ts';
import { repeat, waitForMark } from '../../src/process/repeat.ts';

const WAIT = { timeout: 30_000, interval: 1 };
const FOREVER_MS = 2_000_000_000;
const logger = createLogger('test', 'silent');
afterEach(() => vi.useRealTimers());
const holdClocks = () =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });

test('it runs at once, and again when its wait is over, as long as that is each time', async () => {
  const waits = [1, 1, FOREVER_MS];
  const step = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const repetition = repeat('test', () => waits.shift() ?? FOREVER_MS, logger, step);
  expect(step).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => expect(waits).toEqual([]), WAIT);
  expect(step).toHaveBeenCalledTimes(3);
  await repetition.stop();
});

test('a sign ends the wait; one that comes during a run is not lost', async () => {
  const ends: (() => void)[] = [];
  const step = vi.fn<() => Promise<void>>(() => new Promise((resolve) => ends.push(resolve)));
  const repetition = repeat('test', FOREVER_MS, logger, step);
  repetition.wake();
  ends[0]?.();
  await vi.waitFor(() => expect(step).toHaveBeenCalledTimes(2), WAIT);
  ends[1]?.();
  await new Promise((resolve) => setImmediate(resolve));
  expect(step).toHaveBeenCalledTimes(2);
  repetition.wake();
  await vi.waitFor(() => expect(step).toHaveBeenCalledTimes(3), WAIT);
  ends[2]?.();
  await repetition.stop();
});

test('a failed step runs again, and a stop waits for the running step and starts no other', async () => {
  let end = (): void => {};
  const step = vi
    .fn<(isStopping: () => boolean) => Promise<void>>()
    .mockRejectedValueOnce(new Error('away'))
    .mockImplementation(() => new Promise<void>((resolve) => (end = resolve)));
  const repetition = repeat('test', 1, logger, step);
  await vi.waitFor(() => expect(step).toHaveBeenCalledTimes(2), WAIT);
  let isStopped = false;
  const stopped = repetition.stop().then(() => (isStopped = true));
  expect(step.mock.lastCall?.[0]()).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(isStopped).toBe(false);
  end();
  await stopped;
  expect(step).toHaveBeenCalledTimes(2);
});

test('long waits of one process end together, once an interval and never late', async () => {
  holdClocks();
  const beganAtMs = performance.now();
  const runsAtMs: Record<string, number[]> = { keys: [], types: [], lease: [] };
  const repetitions = [];
  for (const [name, runs] of Object.entries(runsAtMs)) {
    const step = () => Promise.resolve(runs.push(performance.now() - beganAtMs));
    repetitions.push(repeat(name, 1_000, logger, step));
    await vi.advanceTimersByTimeAsync(130);
  }
  // The wake-up is of all three.
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(vi.getTimerCount()).toBe(1);
  const [first = [], ...others] = Object.values(runsAtMs);
  for (const runs of others) expect(runs.slice(1)).toEqual(first.slice(1));
  for (const runs of Object.values(runsAtMs)) {
    const pausesMs = runs.slice(1).map((atMs, index) => atMs - (runs[index] ?? NaN));
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(1_000);
    // Only the first pause is shorter.
    expect(new Set(pausesMs.slice(1))).toEqual(new Set([1_000]));
  }
  await Promise.all(repetitions.map((each) => each.stop()));
  expect(vi.getTimerCount()).toBe(0);
});

test('a wait that is cancelled leaves the waits beside it, and no timer once it was the last', async () => {
  holdClocks();
  const ended: string[] = [];
  const cancelOne = waitForMark(1_000, () => ended.push('one'));
  const cancelOther = waitForMark(1_000, () => ended.push('other'));
  const cancelLater = waitForMark(60_000, () => ended.push('later'));
  cancelOne();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(ended).toEqual(['other']);
  cancelOne();
  cancelOther();
  cancelLater();
  expect(vi.getTimerCount()).toBe(0);
});
