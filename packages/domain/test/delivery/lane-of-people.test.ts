/** Deliveries about one person keep their order; others pass them. */
import { NEVER_ATTEMPTED } from '@sluice/domain/delivery/delivery-schedule';
import { LaneRun, type LaneDelivery, type LaneSnapshot } from '@sluice/domain/delivery/lane';
import { describe, expect, test } from 'vitest';
import {
  delivery,
  failedAtFour,
  healthy,
  policy,
  startAll,
  timedOutAt,
} from '../support/lane-run.ts';

describe('deliveries about one person', () => {
  /** Whom each is about, from sequence 1 on; null for a delivery about no person. */
  function laneAbout(
    people: readonly (number | null)[],
    snapshot: LaneSnapshot = healthy,
    changes: Record<number, Partial<LaneDelivery>> = {},
  ): LaneRun<LaneDelivery> {
    const run = new LaneRun<LaneDelivery>(snapshot, policy);
    run.load(
      people.slice(snapshot.cursor).map((personId, index) => {
        const sequence = snapshot.cursor + 1 + index;
        return { ...delivery(sequence), personId, ...changes[sequence] };
      }),
    );
    return run;
  }
  const tried = {
    retry: { ...NEVER_ATTEMPTED, attempts: 1, firstAttemptAtMs: 0, backoffSteps: 1 },
  };

  test('are in flight one at a time, with any concurrency limit', () => {
    const run = laneAbout([7, 7, 7, 7]);
    expect(startAll(run)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run)).toEqual([2]);
    expect(run.inLineCount).toBe(2);
  });

  test('let deliveries about other people, and about no person, pass', () => {
    const run = laneAbout([7, 7, 8, null, null, 8, 9]);
    expect(startAll(run)).toEqual([1, 3, 4, 5]);
    run.succeed(4);
    expect(startAll(run)).toEqual([7]);
  });

  test.each([[[5, 3, 1]], [[1, 3, 5]], [[3, 5, 1]]])(
    'start again in the order of the log when their turn comes (after %j)',
    (ended) => {
      const run = laneAbout([7, 7, 8, 8, 9, 9, 5]);
      expect(startAll(run)).toEqual([1, 3, 5, 7]);
      for (const sequence of ended) run.succeed(sequence);
      expect(startAll(run)).toEqual([2, 4, 6]);
      for (const sequence of [2, 4, 6, 7]) run.succeed(sequence);
      expect(run.snapshot()).toMatchObject({ cursor: 7, attemptedThrough: 7 });
      expect(run.inLineCount).toBe(0);
    },
  );

  test('never overtake one that failed', () => {
    const run = laneAbout([7, 8, 7, 8]);
    expect(startAll(run)).toEqual([1, 2]);
    run.fail(1, timedOutAt(0), 100, 0);
    run.succeed(2);
    expect(startAll(run, 5_099)).toEqual([]);
    expect(startAll(run, 5_100)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run, 5_100)).toEqual([3]);
    run.succeed(3);
    expect(startAll(run, 5_100)).toEqual([4]);
  });

  test('keep the order of the log if their turn comes before others have started', () => {
    const run = laneAbout([7, 8, 9, 5, 6, 7], { ...healthy, concurrencyLimit: 2 });
    expect(startAll(run)).toEqual([1, 2]);
    run.succeed(1, false);
    expect(startAll(run)).toEqual([3]);
  });

  test('whose turn came while the lane failed start in the order of the log once it resumes', () => {
    const run = laneAbout([7, 8, 8, 9, 9, 5]);
    expect(startAll(run)).toEqual([1, 2, 4, 6]);
    run.fail(1, timedOutAt(0), 100, 0);
    run.succeed(2);
    run.succeed(4);
    run.fail(6, timedOutAt(0), 100, 0);
    expect(startAll(run, 5_100)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run, 5_100)).toEqual([3]);
    run.succeed(3);
    expect(startAll(run, 5_100)).toEqual([5, 6]);
  });

  test('follow one that was given up', () => {
    const run = laneAbout([7, 7], healthy, {
      1: { retry: { ...tried.retry, firstAttemptAtMs: -policy.giveUpAfterMs } },
    });
    startAll(run);
    expect(run.fail(1, timedOutAt(0), 100, 0)).toBe('abandoned');
    expect(startAll(run, 100)).toEqual([2]);
  });

  test('wait behind an earlier one that failed beside the head, also after the head', () => {
    const run = laneAbout([7, 8, 9, 8]);
    startAll(run);
    run.fail(2, timedOutAt(0), 100, 0);
    run.fail(1, timedOutAt(0), 100, 0);
    run.succeed(3);
    expect(startAll(run, 5_100)).toEqual([1]);
    run.succeed(1);
    expect(startAll(run, 5_100)).toEqual([2]);
    run.succeed(2);
    expect(startAll(run, 5_100)).toEqual([4]);
  });

  test('are loaded from where a line begins, past what ended out of order', () => {
    const snapshot = { ...healthy, attemptedThrough: 3 };
    const run = laneAbout([7, 7, 7, 7], snapshot, { 1: { isFinished: true } });
    expect(startAll(run)).toEqual([2]);
  });

  test('of which some were never tried leave the failed one the head', () => {
    // 1 ended, 2 waited for it, 3 failed: the crash or the end of a time slice came then.
    const failing: LaneSnapshot = {
      ...healthy,
      state: 'failing',
      cursor: 1,
      attemptedThrough: 3,
      nextProbeAtMs: 5_000,
    };
    const run = new LaneRun<LaneDelivery>(failing, policy);
    run.load([{ ...delivery(2), personId: 7 }]);
    expect(run.isHeadUnknown).toBe(true);
    expect(startAll(run, 5_000)).toEqual([]);
    run.load([{ ...delivery(3), personId: 8, ...tried }]);
    expect(run.isHeadUnknown).toBe(false);
    expect(startAll(run, 5_000)).toEqual([3]);
    run.succeed(3);
    expect(startAll(run, 5_000)).toEqual([2]);
  });

  describe('about people who were merged', () => {
    const page = (from: number, people: readonly number[], merges: [number, number][]) =>
      people.map((personId, index) => ({
        ...delivery(from + index),
        personId,
        ...(index === 0 && { merges: new Map(merges) }),
      }));

    test('wait for the deliveries in flight about each of them', () => {
      const run = laneAbout([7, 8]);
      expect(startAll(run)).toEqual([1, 2]);
      run.load(page(3, [8, 9], [[7, 8]]));
      expect(startAll(run)).toEqual([4]);
      run.succeed(2);
      expect(startAll(run)).toEqual([]);
      run.succeed(1);
      expect(startAll(run)).toEqual([3]);
      run.succeed(3);
      run.load([{ ...delivery(5), personId: 8 }]);
      expect(startAll(run)).toEqual([5]);
      expect(run.inLineCount).toBe(0);
    });

    test('are in flight one at a time afterwards, in the order of the log, also if loaded before', () => {
      const run = laneAbout([7, 8, 7, 8, 7]);
      expect(startAll(run)).toEqual([1, 2]);
      run.load(page(6, [8], [[7, 8]]));
      run.succeed(1);
      expect(startAll(run)).toEqual([]);
      for (const sequence of [2, 3, 4, 5]) {
        run.succeed(sequence);
        expect(startAll(run)).toEqual([sequence + 1]);
        expect(run.inLineCount).toBe(5 - sequence);
      }
    });

    test('do not overtake one that fails after the merge', () => {
      const run = laneAbout([7, 8]);
      startAll(run);
      run.succeed(2);
      run.load(page(3, [8], [[7, 8]]));
      run.fail(1, timedOutAt(0), 100, 0);
      expect(startAll(run, 5_100)).toEqual([1]);
      run.succeed(1);
      expect(startAll(run, 5_100)).toEqual([3]);
    });

    test('may be merged again, and deliveries about other people do not wait', () => {
      const run = laneAbout([6, 7, 8, 9]);
      expect(startAll(run)).toEqual([1, 2, 3, 4]);
      run.load(page(5, [7], [[6, 7]]));
      run.load(
        page(
          6,
          [8, 9],
          [
            [6, 8],
            [7, 8],
          ],
        ),
      );
      run.succeed(4);
      expect(startAll(run)).toEqual([7]);
      run.succeed(1);
      run.succeed(3);
      expect(startAll(run)).toEqual([]);
      run.succeed(2);
      expect(startAll(run)).toEqual([5]);
      run.succeed(5);
      expect(startAll(run)).toEqual([6]);
    });

    test('give back a turn that came and was not taken', () => {
      const run = laneAbout([7, 9, 7, 8], { ...healthy, concurrencyLimit: 3 });
      expect(startAll(run)).toEqual([1, 2, 4]);
      run.succeed(1, false);
      // The turn of 3 has come; 4 is in flight about whom it becomes part of.
      run.load(page(5, [8], [[7, 8]]));
      expect(startAll(run)).toEqual([]);
      run.succeed(4);
      expect(startAll(run)).toEqual([3]);
    });
  });

  describe('behind the head, which was merged behind one that was never tried', () => {
    /** 3 and 4 were about two people when 4 failed. */
    function resumed(): LaneRun<LaneDelivery> {
      const run = laneAbout([7, 8, 7, 7, 9, 7, null], failedAtFour, { 4: tried });
      expect(startAll(run, 5_000)).toEqual([4]);
      run.succeed(4);
      expect(startAll(run, 5_000)).toEqual([2]);
      return run;
    }

    test('wait for that one, and the head is sent once', () => {
      const run = resumed();
      run.succeed(2);
      expect(startAll(run)).toEqual([3, 5]);
      run.succeed(5);
      expect(startAll(run)).toEqual([7]);
      run.succeed(3);
      expect(startAll(run)).toEqual([6]);
      for (const sequence of [6, 7]) run.succeed(sequence);
      expect(startAll(run)).toEqual([]);
      expect(run).toMatchObject({ inLineCount: 0, span: 0 });
    });

    test('wait for that one also after their person is merged again', () => {
      const run = resumed();
      run.load([{ ...delivery(8), personId: 9, merges: new Map([[7, 9]]) }]);
      expect(run.inLineCount).toBe(3);
      run.succeed(2);
      expect(startAll(run)).toEqual([3, 7]);
      for (const [sequence, next] of [
        [3, 5],
        [5, 6],
        [6, 8],
      ] as const) {
        run.succeed(sequence);
        expect(startAll(run)).toEqual([next]);
      }
    });
  });

  test('keep a turn that came when people of other deliveries are merged', () => {
    const run = laneAbout([7, 9, 7, 8], { ...healthy, concurrencyLimit: 3 });
    expect(startAll(run)).toEqual([1, 2, 4]);
    run.succeed(1, false);
    run.load([{ ...delivery(5), personId: 8, merges: new Map([[5, 6]]) }]);
    expect(startAll(run)).toEqual([3]);
  });

  test('have the earliest as their head if a crash lost the failed one', () => {
    const failing: LaneSnapshot = {
      ...healthy,
      state: 'failing',
      cursor: 1,
      attemptedThrough: 3,
      nextProbeAtMs: 5_000,
    };
    expect(startAll(laneAbout([7, 7, 8], failing), 5_000)).toEqual([2]);
  });
});
