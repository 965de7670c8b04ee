/**
 * Wakes delivery queues with work whose wake-up may be lost: the queue was flushed, a wake-up was lost, a worker died
 * with the lease.
 *
 * Only lanes that two reconcile loops in a row found unclaimed. A delivery that has just been logged has its wake-up on
 * the way. Waking it again made 1,000 useless jobs of 1,000 lanes that got events at once, each added, taken and looked
 * into.
 *
 * Run it every few seconds, on any number of workers: a lane that is woken twice runs once. Beside
 * `deliver-webhook.ts`, which it feeds.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listLanesToWake, nameOf } from '@sluice/database/delivery/lanes';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';

export interface ReconcileLanesDeps {
  readonly database: Database;
  readonly wakeLanes: (lanes: readonly LaneKey[]) => Promise<void>;
  readonly now: () => number;
  /** The longest that the policy puts off a retry probe. */
  readonly probeWaitMsMax: number;
}

/** Lanes found by one reconcile loop; the rest waits for the next, which begins with the longest due. */
const LANES_MAX = 5_000;

/**
 * The reconcile loop of one process, which remembers the lanes that it found last. It resolves with the number of woken
 * lanes.
 */
export function createLaneReconciler(deps: ReconcileLanesDeps): () => Promise<number> {
  /** By name: the last claim that each had had. */
  let found = new Map<string, number>();
  return async () => {
    const lanes = await listLanesToWake(deps.database, deps.now(), LANES_MAX, deps.probeWaitMsMax);
    const foundBefore = found;
    found = new Map();
    const toWake: LaneKey[] = [];
    for (const { environmentId, webhookId, fencing } of lanes) {
      const lane = { environmentId, webhookId };
      if (foundBefore.get(nameOf(lane)) === fencing) toWake.push(lane);
      // One that is woken has its wake-up on the way, as if it had just been logged.
      else found.set(nameOf(lane), fencing);
    }
    if (toWake.length > 0) await deps.wakeLanes(toWake);
    return toWake.length;
  };
}
