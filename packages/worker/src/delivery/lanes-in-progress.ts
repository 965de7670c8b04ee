/**
 * Delivery queues that this process drains. A drain learns at once of deliveries that its own process logs, without a
 * wake-up through the queue. A wake-up of such a queue ends without a statement: while 900 endpoints hang, most
 * wake-ups are theirs.
 *
 * The wake-up may be left out. A notified drain looks at its log again before it gives its lane back, and the release
 * returns the end of the log as of then. A drain that is about to give its lane back answers false, and one that dies
 * leaves its lane to the reconcile loop, as with a wake-up.
 *
 * Between `process-commit-batch.ts`, which logs, `deliver-webhook.ts` and `lane-drain.ts`.
 */
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { nameOf } from '@sluice/database/delivery/lanes';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';

/** A drain as a logging transaction needs it. */
export interface GrowingDrain {
  /** False if it is too late for this drain, and the lane must be woken. */
  noteLogged(lastSequence: number, deliveries?: LoggedLane['deliveries']): boolean;
  /** True if it will ask for the end of its log again before it gives the lane back, and its lease has not ended. */
  readonly looksAgain: boolean;
}

export class LanesInProgress {
  readonly #drains = new Map<string, GrowingDrain>();
  /** Oldest first; also a drain whose lane another one has taken over. */
  readonly #beganAtMs = new Map<GrowingDrain, number>();

  get count(): number {
    return this.#drains.size;
  }

  /**
   * Since when the oldest drain runs, by the clock of `add`. Undefined without a drain. Only this shows one that never
   * ends: most drains have no job that could be found hung.
   */
  get oldestBeganAtMs(): number | undefined {
    const [oldest] = this.#beganAtMs.values();
    return oldest;
  }

  add(lane: LaneKey, drain: GrowingDrain, nowMs: number): void {
    this.#drains.set(nameOf(lane), drain);
    this.#beganAtMs.set(drain, nowMs);
  }

  remove(lane: LaneKey, drain: GrowingDrain): void {
    if (this.#drains.get(nameOf(lane)) === drain) this.#drains.delete(nameOf(lane));
    this.#beganAtMs.delete(drain);
  }

  /** True if a wake-up of the lane may be skipped: the drain here sees all deliveries that were logged before. */
  has(lane: LaneKey): boolean {
    return this.#drains.get(nameOf(lane))?.looksAgain ?? false;
  }

  /** Notifies the lane's drain, after the commit, that its log has grown. False if no drain here looks again. */
  tell(lane: LoggedLane): boolean {
    const { lastSequence, deliveries } = lane;
    return this.#drains.get(nameOf(lane))?.noteLogged(lastSequence, deliveries) ?? false;
  }
}
