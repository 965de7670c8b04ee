/**
 * Delivery queues that a process drains right after it has logged.
 *
 * They need no job. At 20 events a second a wake-up through the queue is five scripts of Redis, 64 commands (`npm run
 * bench -- ordinary`).
 *
 * The trade-off: the wake-up does not outlive the process. If it dies in between, the reconcile loop finds the lane,
 * like any lane whose wake-up was lost. Other workers do not help either. So beyond some lanes at a time wake-ups go
 * through the queue, and a worker with time takes them.
 *
 * If the transaction took the lane's lease (`logged-lanes.ts`), the drain begins at once.
 *
 * Between `process-commit-batch.ts`, which logs, and `deliver-webhook.ts`.
 */
import { nameOf } from '@sluice/database/delivery/lanes';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { TakenLane } from '../lane/lane-drain-deps.ts';

export interface DirectWakesOptions {
  /** Drains a lane for a time slice. */
  readonly drain: (lane: LaneKey, taken?: TakenLane) => Promise<unknown>;
  /** Lanes at a time. */
  readonly countMax: number;
  readonly onFailure: (error: unknown) => void;
}

export class DirectWakes {
  readonly #options: DirectWakesOptions;
  /** By the lane's name: whether something was logged since, which may have come too late for the drain under way. */
  readonly #wokenAgain = new Map<string, boolean>();
  readonly #runs = new Set<Promise<void>>();
  #isClosing = false;

  constructor(options: DirectWakesOptions) {
    this.#options = options;
  }

  /** How many lanes more it would take. */
  get roomCount(): number {
    return Math.max(0, this.#options.countMax - this.#runs.size);
  }

  /** Begins to drain a lane, or does so once more after the drain under way. @returns false if there are too many. */
  wake(lane: LaneKey): boolean {
    const name = nameOf(lane);
    if (this.#wokenAgain.has(name)) {
      this.#wokenAgain.set(name, true);
      return true;
    }
    if (this.#wokenAgain.size >= this.#options.countMax) return false;
    this.#begin(this.#run(lane, name));
    return true;
  }

  /**
   * Begins to drain a lane whose lease this process has taken with the log, however many there are. An earlier drain of it
   * here, if one has not ended, has given the lane back.
   */
  drainTaken(lane: LaneKey, taken: TakenLane): void {
    const name = nameOf(lane);
    this.#begin(
      this.#wokenAgain.has(name) ? this.#drainOnce(lane, taken) : this.#run(lane, name, taken),
    );
  }

  /** As `wake`, for a lane that a drain here has given back with more to do. @returns false if it is left to the queue. */
  wakeAgain(lane: LaneKey): boolean {
    return !this.#isClosing && this.wake(lane);
  }

  #begin(work: Promise<void>): void {
    const run = work.finally(() => this.#runs.delete(run));
    this.#runs.add(run);
  }

  /** Resolves when the last drain has ended. Call it after the last log. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#runs);
  }

  async #run(lane: LaneKey, name: string, taken?: TakenLane): Promise<void> {
    const { drain, onFailure } = this.#options;
    let held = taken;
    try {
      do {
        this.#wokenAgain.set(name, false);
        await drain(lane, held);
        held = undefined;
      } while (this.#wokenAgain.get(name));
    } catch (error) {
      onFailure(error);
    } finally {
      this.#wokenAgain.delete(name);
    }
  }

  async #drainOnce(lane: LaneKey, taken: TakenLane): Promise<void> {
    const { drain, onFailure } = this.#options;
    try {
      await drain(lane, taken);
    } catch (error) {
      onFailure(error);
    }
  }
}
