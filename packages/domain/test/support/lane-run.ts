/** A lane as the tests of its rules begin with it. */
import { NEVER_ATTEMPTED } from '@sluice/domain/delivery/delivery-schedule';
import {
  LaneRun,
  type LaneDelivery,
  type LanePolicy,
  type LaneSnapshot,
} from '@sluice/domain/delivery/lane';

export const HOUR_MS = 3_600_000;
export const policy: LanePolicy = {
  listedFailureWaitMs: HOUR_MS,
  backoffBaseMs: 10_000,
  backoffCapMs: HOUR_MS,
  giveUpAfterMs: 168 * HOUR_MS,
  windowMax: 4,
};
export const healthy: LaneSnapshot = {
  state: 'healthy',
  cursor: 0,
  attemptedThrough: 0,
  nextProbeAtMs: null,
  concurrencyLimit: 4,
};
export const refusedAt = (startedAtMs: number) =>
  ({ failure: 'connection_refused', status: null, startedAtMs }) as const;
export const timedOutAt = (startedAtMs: number) =>
  ({ failure: 'timeout', status: null, startedAtMs }) as const;

export function delivery(sequence: number, isFinished = false): LaneDelivery {
  return { sequence, retry: NEVER_ATTEMPTED, isFinished, isTriedOnce: false, personId: null };
}

export function laneOf(count: number, snapshot: LaneSnapshot = healthy): LaneRun<LaneDelivery> {
  const run = new LaneRun(snapshot, policy);
  run.load(Array.from({ length: count }, (_, index) => delivery(snapshot.cursor + 1 + index)));
  return run;
}

/**
 * Starts all that may start.
 *
 * @throws Error if the lane announced another outcome of a start.
 */
export function startAll(run: LaneRun<LaneDelivery>, nowMs = 0): number[] {
  const started: number[] = [];
  for (;;) {
    const mayStart = run.mayStart(nowMs);
    const next = run.start(nowMs);
    if (mayStart !== (next !== undefined)) throw new Error(`mayStart: ${mayStart}`);
    if (!next) return started;
    started.push(next.sequence);
  }
}

/** The first is done, and 4 failed. */
export const failedAtFour: LaneSnapshot = {
  ...healthy,
  state: 'failing',
  cursor: 1,
  attemptedThrough: 4,
  nextProbeAtMs: 5_000,
};
