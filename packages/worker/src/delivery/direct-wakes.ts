/**
 * Lanes that the process drains which has just logged for them, without a job. At 20 events a second a wake-up through the
 * queue is five scripts of Redis, 64 commands (`npm run bench -- ordinary`).
 *
 * It trades away that a wake-up outlives the process: the reconcile loop finds the lane of one that dies in between, as
 * it finds any lane whose wake-up was lost. And that other workers help: beyond so many lanes at a time wake-ups go
 * through the queue, where the worker takes them that has time.
 *
 * Between `process-commit-batch.ts`, which logs, and `deliver-webhook.ts`.
 */
import { nameOf, type LaneKey } from '@sluice/database/delivery/lanes';
import type { LaneOutcome } from './deliver-webhook.ts';

export interface DirectWakesOptions {
  /** Drains a lane for a time slice. */
  readonly drain: (lane: LaneKey) => Promise<LaneOutcome>;
  /** Lanes at a time. */
  readonly countMax: number;
  readonly onFailure: (error: unknown) => void;
}

export class DirectWakes {
  readonly #options: DirectWakesOptions;
  /** By the lane's name: whether something was logged since, which may have come too late for the drain under way. */
  readonly #wokenAgain = new Map<string, boolean>();
  readonly #runs = new Set<Promise<void>>();

  constructor(options: DirectWakesOptions) {
    this.#options = options;
  }

  /** Begins to drain a lane, or does so once more after the drain under way. @returns false where there are too many. */
  wake(lane: LaneKey): boolean {
    const name = nameOf(lane);
    if (this.#wokenAgain.has(name)) {
      this.#wokenAgain.set(name, true);
      return true;
    }
    if (this.#wokenAgain.size >= this.#options.countMax) return false;
    const run: Promise<void> = this.#run(lane, name).finally(() => this.#runs.delete(run));
    this.#runs.add(run);
    return true;
  }

  /** Resolves when none is under way. Call it when nothing is logged any more. */
  async close(): Promise<void> {
    await Promise.all(this.#runs);
  }

  async #run(lane: LaneKey, name: string): Promise<void> {
    const { drain, onFailure } = this.#options;
    try {
      do {
        this.#wokenAgain.set(name, false);
        // With more to do, it has woken the lane through the queue.
        if ((await drain(lane)).outcome === 'more') return;
      } while (this.#wokenAgain.get(name));
    } catch (error) {
      onFailure(error);
    } finally {
      this.#wokenAgain.delete(name);
    }
  }
}
