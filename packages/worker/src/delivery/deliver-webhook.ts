/**
 * Drains one lane for a time slice.
 *
 * It sends the log from the cursor on, in order, and makes sure that the lane is woken again if more work remains.
 *
 *   claim the lease ─▶ load ─▶ send ─▶ keep ─▶ … ─▶ keep and give the lease back ─▶ wake again
 *                      └───── `lane-drain.ts` ────┘
 * If the logging transaction took the lease, the claim is left out (`database/src/delivery/logged-lanes.ts`). If a
 * worker dies after it sent deliveries and before it kept that, they are sent again (at least once), in order, with the
 * same event id. Step 11 of the walk. Before: `appendDeliveries` logged the deliveries, and the queue's wake-up. After:
 * `http-client.ts` (step 13) and `recordProgress` of `database/src/delivery/lane-progress.ts` (step 14).
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { LaneDrain, type DrainOutcome, type ReleasedLane } from '../lane/lane-drain.ts';
import type { LaneDrainDeps, LeaseOptions, TakenLane } from '../lane/lane-drain-deps.ts';
import type { LaneStore } from '../lane/lane-store.ts';
import type { LanesInProgress } from './lanes-in-progress.ts';

export interface DeliverLaneDeps extends LaneDrainDeps {
  readonly store: LaneStore;
  readonly inProgress: LanesInProgress;
  /** Wakes the lane again at once, after this call has ended. */
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly wakeLaneAt: (lane: LaneKey, atMs: number) => Promise<void>;
}

const LEASE_MS_MIN = 15_000;
const TIME_SLICE_MS = 500;

/**
 * Times for which lanes are held and drained, if a request may take `timeoutMs`. A request is started only while the
 * lease outlives it, and half of a lease may be gone before it is prolonged. So more than two of the longest fit into
 * one.
 */
export const leasesOf = (timeoutMs: number): LeaseOptions => ({
  timeoutMs,
  leaseMs: Math.max(LEASE_MS_MIN, 3 * timeoutMs),
  timeSliceMs: TIME_SLICE_MS,
});

export type LaneOutcome =
  /** The lane has no more deliveries. */
  | { readonly outcome: 'idle' }
  /** The time slice is over; it was woken again. */
  | { readonly outcome: 'more' }
  /** Failing, or at its rate limit; it will be woken for the next request. */
  | { readonly outcome: 'waiting'; readonly untilMs: number }
  /** It is being drained already, by this worker or another one. */
  | { readonly outcome: 'held' }
  /** The webhook is disabled, by its owner or because its workspace is not open any more. */
  | { readonly outcome: 'paused' }
  /** The webhook is deleted. */
  | { readonly outcome: 'gone' }
  /** The lease was lost to another worker, or the webhook was deleted meanwhile; no progress was kept since. */
  | { readonly outcome: 'fenced' };

/** A wake-up that is being run. */
export interface LaneDelivery {
  /**
   * @throws when the database is away for longer than the lease; then the reconcile loop finds the lane.
   */
  readonly ended: Promise<LaneOutcome>;
  /** True if it has only waited for the endpoint for so much idle time. */
  isStill(durationMs: number): boolean;
}

/**
 * Runs one wake-up of a lane. May be called for one lane at the same time anywhere: one drains, the others answer
 * `held`.
 *
 * @param taken - the lane's lease, if this process holds it already and no drain runs under it.
 */
export function deliverLane(deps: DeliverLaneDeps, lane: LaneKey, taken?: TakenLane): LaneDelivery {
  let drain: LaneDrain | undefined;
  const run = async (): Promise<LaneOutcome> => {
    if (!taken && deps.inProgress.has(lane)) return { outcome: 'held' };
    const held = taken ?? (await take(deps, lane));
    if (held) drain = new LaneDrain(deps, lane, held);
    const ending = drain ? await runInProgress(deps, lane, drain) : await whyNot(deps, lane);
    const outcome = ending.outcome === 'kept' ? afterRelease(ending.lane, deps.now()) : ending;
    try {
      if (outcome.outcome === 'more') await deps.wakeLane(lane);
      else if (outcome.outcome === 'waiting') await deps.wakeLaneAt(lane, outcome.untilMs);
    } catch (error) {
      deps.logger.warn(
        { error, ...lane },
        'a delivery queue could not be woken; the reconciliation loop will find it',
      );
    }
    return outcome;
  };
  return { ended: run(), isStill: (durationMs) => drain?.isStill(durationMs) ?? false };
}

/** Undefined if no delivery is due, or another process holds the lease. */
async function take(deps: DeliverLaneDeps, lane: LaneKey): Promise<TakenLane | undefined> {
  const { presence, leases, store, monotonicNow } = deps;
  await presence.shown();
  const claimedAtMs = monotonicNow();
  const { processId: holderProcessId } = presence;
  const claimed = await store.claim({ lane, leaseMs: leases.leaseMs, holderProcessId });
  return claimed && { claimed, claimedAtMs };
}

async function runInProgress(
  { inProgress, monotonicNow }: DeliverLaneDeps,
  lane: LaneKey,
  drain: LaneDrain,
): Promise<DrainOutcome> {
  inProgress.add(lane, drain, monotonicNow());
  try {
    return await drain.run();
  } finally {
    inProgress.remove(lane, drain);
  }
}

async function whyNot(deps: DeliverLaneDeps, lane: LaneKey): Promise<LaneOutcome> {
  const report = await deps.store.find(lane);
  if (!report) return { outcome: 'gone' };
  if (report.isPaused) return { outcome: 'paused' };
  if (report.lastSequence <= report.cursor) return { outcome: 'idle' };
  if (report.isOver) {
    // Disabled, so that it does not count as waiting work. The person who opens the workspace again decides about its
    // deliveries.
    await deps.store.disable(lane);
    return { outcome: 'paused' };
  }
  if (report.isHeld) return { outcome: 'held' };
  return afterRelease(report, deps.now());
}

/** The next action for a lane without a holder. */
function afterRelease(lane: ReleasedLane, nowMs: number): LaneOutcome {
  if (lane.isPaused) return { outcome: 'paused' };
  if (lane.lastSequence <= lane.cursor) return { outcome: 'idle' };
  const untilMs = Math.max(lane.nextProbeAtMs ?? 0, lane.nextStartAtMs ?? 0);
  return untilMs <= nowMs ? { outcome: 'more' } : { outcome: 'waiting', untilMs };
}
