import { afterEach, expect, test, vi } from 'vitest';
import type { LaneOutcome } from '../../src/delivery/deliver-webhook.ts';
import { LaneCapacity } from '../../src/delivery/lane-capacity.ts';

function createLane(isStill: boolean) {
  let end: (outcome: LaneOutcome) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const ended = new Promise<LaneOutcome>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  const lane = { ended, isStill: () => isStill };
  return { lane, end: () => end({ outcome: 'idle' }), fail: () => fail(new Error('away')) };
}

afterEach(() => void vi.useRealTimers());

/** An idle process. */
const idleTimeMs = () => performance.now();
const options = { stillAfterMs: 5, idleTimeMs, stillMax: 1, onFailure: () => {} };

test('a lane that only waits for its endpoint lets its job end, and is waited for when the worker stops', async () => {
  const capacity = new LaneCapacity(options);
  const hanging = createLane(true);
  await capacity.waitFor(hanging.lane);
  expect(capacity.stillCount).toBe(1);
  let isClosed = false;
  const closing = capacity.close().then(() => (isClosed = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  hanging.end();
  await closing;
  expect(capacity.stillCount).toBe(0);
});

test('a lane that gets on, and one too many that hangs, keep their job', async () => {
  const capacity = new LaneCapacity(options);
  const first = createLane(true);
  await capacity.waitFor(first.lane);
  for (const isStill of [true, false]) {
    const { lane, end } = createLane(isStill);
    let hasEnded = false;
    const waiting = capacity.waitFor(lane).then(() => (hasEnded = true));
    await expect.poll(() => hasEnded, { timeout: 50 }).toBe(false);
    end();
    await waiting;
  }
  first.end();
  await capacity.close();
});

test('a process without idle time does not look whether lanes only wait, and one that has it again does', async () => {
  vi.useFakeTimers();
  let idleTimeNowMs = 100;
  let looks = 0;
  const capacity = new LaneCapacity({ ...options, idleTimeMs: () => idleTimeNowMs });
  const { lane, end } = createLane(false);
  const waiting = capacity.waitFor({ ...lane, isStill: () => ++looks > 1 });
  await vi.advanceTimersByTimeAsync(10 * options.stillAfterMs);
  expect(looks).toBe(1);
  idleTimeNowMs += options.stillAfterMs;
  await vi.advanceTimersByTimeAsync(options.stillAfterMs);
  expect(looks).toBe(2);
  await waiting;
  end();
  await capacity.close();
});

test('a failure during the wait rejects the job, and a later failure is reported by itself', async () => {
  const failures: unknown[] = [];
  const capacity = new LaneCapacity({
    ...options,
    onFailure: (error) => void failures.push(error),
  });
  const early = createLane(false);
  const waiting = capacity.waitFor(early.lane);
  early.fail();
  await expect(waiting).rejects.toThrow('away');
  const late = createLane(true);
  await capacity.waitFor(late.lane);
  late.fail();
  await capacity.close();
  expect(failures).toEqual([new Error('away')]);
});
