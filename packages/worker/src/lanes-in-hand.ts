/**
 * The lanes that this process drains now, so that what it logs itself is sent without a wake-up through the
 * queue: a drain that is told reads on at once.
 *
 * Safe to leave the wake-up out: a drain that was told looks at its log again before it gives its lane
 * back, and giving back tells the end of the log as of then. One that is about to give back does not take
 * the word, and one that dies leaves its lane to the sweep, as with a wake-up.
 *
 * Between `process-envelope.ts`, which logs, and `lane-drain.ts`.
 */
import type { LoggedLane } from '@sluice/database/deliveries';
import { nameOf, type LaneKey } from '@sluice/database/lanes';

/** A drain, as far as those who log need it. */
export interface GrowingDrain {
  /** False where it is too late for this drain: the lane must be woken. */
  noteLogged(lastSequence: number): boolean;
}

export class LanesInHand {
  readonly #drains = new Map<string, GrowingDrain>();

  add(lane: LaneKey, drain: GrowingDrain): void {
    this.#drains.set(nameOf(lane), drain);
  }

  remove(lane: LaneKey, drain: GrowingDrain): void {
    if (this.#drains.get(nameOf(lane)) === drain) this.#drains.delete(nameOf(lane));
  }

  /** Tells of a log that has grown, once that is committed. False where nobody here took the word. */
  tell(lane: LoggedLane): boolean {
    return this.#drains.get(nameOf(lane))?.noteLogged(lane.lastSequence) ?? false;
  }
}
