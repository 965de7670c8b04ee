import { expect, test, vi } from 'vitest';
import { createLogger } from '../../src/process/logger.ts';
import { repeat } from '../../src/process/repeat.ts';

const WAIT = { timeout: 30_000, interval: 1 };
const FOREVER_MS = 2_000_000_000;
const logger = createLogger('test', 'silent');

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
