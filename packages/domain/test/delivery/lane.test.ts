import { LaneRun, type LaneDelivery, type LaneSnapshot } from '@sluice/domain/delivery/lane';
import { describe, expect, test } from 'vitest';
import {
  HOUR_MS,
  policy,
  healthy,
  refusedAt,
  timedOutAt,
  delivery,
  laneOf,
  startAll,
} from '../support/lane-run.ts';

describe('a healthy lane', () => {
  test('starts in order, as many as its concurrency limit', () => {
    expect(startAll(laneOf(9))).toEqual([1, 2, 3, 4]);
  });

  test('raises its concurrency limit by one with each success, up to the most', () => {
    const run = laneOf(9, { ...healthy, concurrencyLimit: 1 });
    expect(startAll(run)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run)).toEqual([2, 3]);
    run.succeed(2);
    run.succeed(3);
    expect(startAll(run)).toEqual([4, 5, 6, 7]);
    run.succeed(4);
    expect(startAll(run)).toEqual([8]);
  });

  test('keeps its concurrency limit if more at a time would gain no speed', () => {
    const run = laneOf(9, { ...healthy, concurrencyLimit: 1 });
    startAll(run);
    run.succeed(1, false);
    expect(startAll(run)).toEqual([2]);
    expect(run.snapshot()).toMatchObject({ cursor: 1, concurrencyLimit: 1 });
  });

  test('moves its cursor only over finished deliveries without a gap', () => {
    const run = laneOf(4);
    startAll(run);
    run.succeed(2);
    run.succeed(3);
    expect(run.snapshot()).toMatchObject({ cursor: 0, attemptedThrough: 4 });
    run.succeed(1);
    expect(run.snapshot()).toMatchObject({ cursor: 3, attemptedThrough: 4 });
  });
});

describe('the first failure', () => {
  test('stops new deliveries, and the earliest failed one becomes the head', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(3, refusedAt(0), 100, 0);
    expect(startAll(run)).toEqual([]);
    run.fail(2, refusedAt(0), 200, 0);
    run.succeed(1);
    run.succeed(4);
    expect(startAll(run)).toEqual([]);
    expect(run.snapshot()).toEqual({
      state: 'failing',
      cursor: 1,
      attemptedThrough: 4,
      nextProbeAtMs: 200 + HOUR_MS,
      concurrencyLimit: 4,
    });
  });

  test('sets the time of the retry probe, and later timeouts do not move it', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(1, refusedAt(0), 100, 0);
    run.fail(4, timedOutAt(0), 4_000, 0);
    run.succeed(3);
    run.succeed(2);
    expect(run.snapshot()).toMatchObject({
      state: 'failing',
      cursor: 0,
      nextProbeAtMs: 100 + HOUR_MS,
    });
    startAll(run, 100 + HOUR_MS);
    run.succeed(1);
    expect(run.snapshot()).toMatchObject({ state: 'healthy', cursor: 3 });
  });

  test.each([
    { title: 'later', first: 4, second: 1 },
    { title: 'earlier', first: 1, second: 4 },
  ])('does not cut short the hour of a listed one beside it, known $title', ({ first, second }) => {
    const run = laneOf(9);
    startAll(run);
    const fail = (sequence: number) =>
      sequence === 4 ? run.fail(4, refusedAt(0), 100, 0) : run.fail(1, timedOutAt(0), 4_000, 0);
    fail(first);
    fail(second);
    run.succeed(2);
    run.succeed(3);
    expect(startAll(run, 100 + HOUR_MS - 1)).toEqual([]);
    expect(run.snapshot()).toMatchObject({ cursor: 0, nextProbeAtMs: 100 + HOUR_MS });
    expect(startAll(run, 100 + HOUR_MS)).toEqual([1]);
    run.fail(1, timedOutAt(100 + HOUR_MS), HOUR_MS + 4_100, 0);
    expect(run.nextProbeAtMs).toBe(HOUR_MS + 4_100 + 10_000);
  });

  test('of an earlier delivery sets the time of the retry probe anew', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(3, timedOutAt(0), 0, 0);
    expect(run.nextProbeAtMs).toBe(5_000);
    run.fail(1, timedOutAt(0), 4_000, 0);
    expect(run.nextProbeAtMs).toBe(9_000);
  });

  test('leaves the endpoint alone for the Retry-After of a delivery that failed beside it', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(1, timedOutAt(0), 0, 0);
    const asked = { failure: 'status', status: 503, startedAtMs: 0, retryAfterMs: 8_000 } as const;
    run.fail(2, asked, 0, 0.999);
    run.succeed(3);
    run.succeed(4);
    // By its own step the head would be tried after five seconds.
    expect(run.nextProbeAtMs).toBe(8_000);
    expect(startAll(run, 7_999)).toEqual([]);
    expect(startAll(run, 8_000)).toEqual([1]);
  });

  test('is not forgotten when a later delivery is given up beside it', () => {
    const run = new LaneRun(healthy, policy);
    const old = {
      attempts: 9,
      firstAttemptAtMs: -policy.giveUpAfterMs,
      hasWaitedListed: true,
      backoffSteps: 8,
    };
    run.load([delivery(1), { ...delivery(2), retry: old }, delivery(3)]);
    startAll(run);
    run.fail(1, refusedAt(0), 100, 0);
    expect(run.fail(2, refusedAt(0), 100, 0)).toBe('abandoned');
    run.succeed(3);
    expect(startAll(run, 200)).toEqual([]);
    expect(run.snapshot()).toMatchObject({
      state: 'failing',
      cursor: 0,
      nextProbeAtMs: 100 + HOUR_MS,
    });
  });

  test('is in the snapshot at once, so that a crash does not shorten the wait', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(3, refusedAt(0), 100, 0);
    expect(run.snapshot()).toMatchObject({ state: 'failing', nextProbeAtMs: 100 + HOUR_MS });
  });
});

describe('a failing lane', () => {
  const failing: LaneSnapshot = {
    ...healthy,
    state: 'failing',
    nextProbeAtMs: 5_000,
    cursor: 6,
    attemptedThrough: 9,
  };

  test('probes with the head alone, not before its time', () => {
    const run = laneOf(9, failing);
    expect(startAll(run, 4_999)).toEqual([]);
    expect(startAll(run, 5_000)).toEqual([7]);
  });

  test('resumes in order, one at first, when the head is delivered', () => {
    const run = laneOf(9, failing);
    startAll(run, 5_000);
    run.succeed(7);
    expect(run.snapshot()).toMatchObject({
      state: 'healthy',
      cursor: 7,
      nextProbeAtMs: null,
      concurrencyLimit: 1,
    });
    expect(startAll(run, 5_000)).toEqual([8]);
  });

  test('resumes in order when the head is abandoned', () => {
    const run = new LaneRun(failing, policy);
    run.load([
      {
        ...delivery(7),
        retry: { attempts: 9, firstAttemptAtMs: 0, hasWaitedListed: true, backoffSteps: 8 },
      },
      delivery(8),
    ]);
    startAll(run, 5_000);
    expect(run.fail(7, refusedAt(5_000), policy.giveUpAfterMs, 0)).toBe('abandoned');
    expect(startAll(run, 5_000)).toEqual([8]);
  });

  test('never sends a delivery again that succeeded beside the head', () => {
    const run = new LaneRun(failing, policy);
    run.load([delivery(7), delivery(8, true), delivery(9), delivery(10)]);
    startAll(run, 5_000);
    run.succeed(7);
    expect(run.snapshot()).toMatchObject({ cursor: 8 });
    expect(startAll(run, 5_000)).toEqual([9]);
  });

  test('sends the deliveries that failed beside the head next, before anything newer', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(2, refusedAt(0), 0, 0);
    run.fail(4, refusedAt(0), 0, 0);
    run.succeed(1);
    run.succeed(3);
    expect(startAll(run, HOUR_MS)).toEqual([2]);
    run.succeed(2);
    expect(startAll(run, HOUR_MS)).toEqual([4]);
    run.fail(4, refusedAt(HOUR_MS), HOUR_MS, 0);
    expect(run.snapshot()).toMatchObject({ state: 'failing', cursor: 3 });
    expect(run.nextProbeAtMs).toBe(HOUR_MS + 5_000);
  });

  test('probes at once when its endpoint was changed, and no later than it would have', () => {
    const run = laneOf(9, failing);
    run.probeAtOnce(9_000);
    expect(run.nextProbeAtMs).toBe(5_000);
    run.probeAtOnce(1_000);
    expect(startAll(run, 1_000)).toEqual([7]);
  });

  test('goes on with its own steps if the changed endpoint fails, without an hour of before', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(1, timedOutAt(0), 4_000, 0);
    for (const sequence of [2, 3, 4]) run.fail(sequence, refusedAt(0), 4_000, 0);
    run.probeAtOnce(5_000);
    startAll(run, 5_000);
    run.fail(1, timedOutAt(5_000), 9_000, 0);
    expect(run.nextProbeAtMs).toBe(9_000 + 10_000);
  });

  test('probes at once when its endpoint was changed, after any listed failures beside the head', () => {
    const run = laneOf(9);
    startAll(run);
    run.fail(1, timedOutAt(0), 4_000, 0);
    for (const sequence of [2, 3, 4]) run.fail(sequence, refusedAt(0), 4_000, 0);
    run.probeAtOnce(5_000);
    expect(startAll(run, 5_000)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run, 5_000)).toEqual([2]);
  });
});

test('a healthy lane stays as it is when its endpoint is changed', () => {
  const run = laneOf(9);
  startAll(run);
  const before = run.snapshot();
  run.probeAtOnce(1_000);
  expect(run.snapshot()).toEqual(before);
});

test('a gap in the log is refused, not skipped', () => {
  const run = laneOf(2);
  expect(() => run.load([delivery(4)])).toThrow(/4 follows 2/);
});

test('an ending of a delivery that is not in flight is refused', () => {
  const run = laneOf(2);
  expect(() => run.succeed(1)).toThrow(/not in flight/);
});

describe('a delivery that is tried once', () => {
  const withOnce = (count: number, once: number, snapshot: LaneSnapshot = healthy) => {
    const run = new LaneRun<LaneDelivery>(snapshot, policy);
    run.load(
      Array.from({ length: count }, (_, index) => {
        const sequence = snapshot.cursor + 1 + index;
        return { ...delivery(sequence), isTriedOnce: sequence === once };
      }),
    );
    return run;
  };

  test('ends with its failure and holds no other delivery back', () => {
    const run = withOnce(9, 2);
    expect(startAll(run)).toEqual([1, 2, 3, 4]);
    expect(run.fail(2, refusedAt(0), 100, 0)).toBe('abandoned');
    expect(startAll(run)).toEqual([5]);
    run.succeed(1);
    expect(run.snapshot()).toMatchObject({ state: 'healthy', cursor: 2 });
  });

  test('waits behind a head like any other, and never ends the wait of another', () => {
    const run = withOnce(3, 2, { ...healthy, concurrencyLimit: 2 });
    expect(startAll(run)).toEqual([1, 2]);
    run.fail(1, refusedAt(0), 100, 0);
    const { nextProbeAtMs } = run.snapshot();
    expect(run.fail(2, refusedAt(0), 200, 0)).toBe('abandoned');
    expect(run.snapshot()).toMatchObject({ state: 'failing', cursor: 0, nextProbeAtMs });
    expect(startAll(run, 300)).toEqual([]);
    expect(startAll(run, nextProbeAtMs!)).toEqual([1]);
  });

  test('that is the head ends the wait of the others with its failure, and they follow in order', () => {
    const run = withOnce(4, 2, {
      state: 'failing',
      cursor: 1,
      attemptedThrough: 2,
      nextProbeAtMs: 500,
      concurrencyLimit: 4,
    });
    expect(startAll(run, 500)).toEqual([2]);
    expect(run.fail(2, refusedAt(500), 600, 0)).toBe('abandoned');
    expect(run.snapshot()).toMatchObject({
      state: 'healthy',
      cursor: 2,
      nextProbeAtMs: null,
      concurrencyLimit: 1,
    });
    expect(startAll(run, 600)).toEqual([3]);
  });
});
