/** A lane that loads its log page by page. Its counts decide about the next page. */
import { NEVER_ATTEMPTED } from '@sluice/domain/delivery/delivery-schedule';
import { LaneRun, type LaneDelivery } from '@sluice/domain/delivery/lane';
import { describe, expect, test } from 'vitest';
import {
  delivery,
  failedAtFour,
  healthy,
  laneOf,
  policy,
  startAll,
  timedOutAt,
} from '../support/lane-run.ts';

const tried = { ...NEVER_ATTEMPTED, attempts: 1, firstAttemptAtMs: 0, backoffSteps: 1 };

test('the counts follow the deliveries that are loaded, started and finished', () => {
  const run = laneOf(3);
  expect(run).toMatchObject({ loadedThrough: 3, ahead: 3, span: 3, inFlight: 0 });
  startAll(run);
  expect(run).toMatchObject({ loadedThrough: 3, ahead: 0, span: 3, inFlight: 3 });
  run.succeed(2);
  expect(run).toMatchObject({ span: 3, inFlight: 2 });
  run.succeed(1);
  expect(run).toMatchObject({ span: 1, inFlight: 1 });
  run.load([delivery(4), delivery(5)]);
  expect(run).toMatchObject({ loadedThrough: 5, ahead: 2, span: 3 });
});

test('deliveries that ended in an earlier run are neither ahead nor kept in memory', () => {
  const run = new LaneRun(healthy, policy);
  run.load([delivery(1, true), delivery(2, true), delivery(3)]);
  expect(run).toMatchObject({ loadedThrough: 3, ahead: 1, span: 1 });
});

test.each([
  ['more than the policy allows', 9, 4],
  ['as many as it allows', 4, 4],
  ['none', 0, 1],
])('a snapshot with a limit of %s starts within it, and at least one', (_, limit, started) => {
  const run = laneOf(9, { ...healthy, concurrencyLimit: limit });
  expect(run.concurrencyLimit).toBe(started);
  expect(startAll(run)).toHaveLength(started);
});

test('of a delivery in flight the earlier attempts are known', () => {
  const run = new LaneRun(healthy, policy);
  run.load([{ ...delivery(1), retry: { ...tried, attempts: 3 } }, delivery(2)]);
  startAll(run);
  expect(run.attempts(1)).toBe(3);
  expect(run.attempts(2)).toBe(0);
  expect(run.fail(2, timedOutAt(0), 100, 0)).toBe('retrying');
  expect(() => run.attempts(2)).toThrow(/not in flight/);
});

describe('the head of a failing lane', () => {
  test('is searched for only while the lane fails', () => {
    expect(laneOf(1).isHeadUnknown).toBe(false);
    const run = new LaneRun<LaneDelivery>(failedAtFour, policy);
    expect(run).toMatchObject({ isHeadUnknown: true, nextProbeAtMs: 5_000 });
    run.load([delivery(2), { ...delivery(3), retry: tried }]);
    expect(run.isHeadUnknown).toBe(false);
  });

  test('is the first one that was tried and has not ended, and waits for its time', () => {
    const run = new LaneRun<LaneDelivery>(failedAtFour, policy);
    run.load([
      delivery(2),
      { ...delivery(3, true), retry: tried },
      { ...delivery(4), retry: tried },
    ]);
    expect(startAll(run, 4_999)).toEqual([]);
    expect(startAll(run, 5_000)).toEqual([4]);
  });

  test('stays the head when more of the log is loaded, also beside an earlier one in flight', () => {
    const run = new LaneRun<LaneDelivery>(healthy, policy);
    run.load([{ ...delivery(1), retry: tried }, delivery(2)]);
    expect(startAll(run)).toEqual([1, 2]);
    run.fail(2, timedOutAt(0), 100, 0);
    run.load([delivery(3)]);
    run.succeed(1);
    expect(run.snapshot()).toMatchObject({ state: 'failing', cursor: 1, nextProbeAtMs: 5_100 });
    expect(startAll(run, 5_100)).toEqual([2]);
  });
});
