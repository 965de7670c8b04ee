/** A worker's writes to a lane, without a worker. */
import { recordProgress, type AttemptRecord } from '@sluice/database/delivery/lane-progress';
import { claimLane } from '@sluice/database/delivery/lanes';
import type { LaneSnapshot } from '@sluice/domain/delivery/lane';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { ApiUnderTest } from './api-under-test.ts';

/** A first attempt that succeeded, with further fields. */
type Attempted = Partial<AttemptRecord> & Pick<AttemptRecord, 'sequence'>;

/** Claims the lane as a worker does, keeps its progress and its attempts, and gives the lane back. */
export async function recordDrain(
  { database, clock }: ApiUnderTest,
  lane: LaneKey,
  reached: Omit<LaneSnapshot, 'concurrencyLimit'>,
  attempts: readonly Attempted[],
): Promise<void> {
  const claimed = await claimLane(database, lane, 60_000, clock.nowMs);
  const progress = {
    snapshot: { ...reached, concurrencyLimit: 1 },
    attempts: attempts.map((attempt) => ({ ...DELIVERED, ...attempt })),
    endpointVersion: 0,
    isLast: true,
  };
  await recordProgress(database, lane, claimed!.fencing, progress, 60_000, clock.nowMs);
}

const DELIVERED = {
  attempt: 1,
  startedAtMs: 0,
  durationMs: 1,
  status: 200,
  outcome: 'delivered',
  failure: null,
  failureMessage: null,
  responseHead: null,
  responseBody: null,
} as const;
