/**
 * Drains of delivery queues that were woken together, as a range.
 *
 *   a job of a range ─▶ wait for capacity ─▶ claim due queues, in one statement ─▶ begin the drains ─▶ the job ends
 *
 * The job ends before its drains: else deliveries logged meanwhile for a neighbour would wait for the slowest queue of
 * the range. If the process dies, other workers find its leases (`departed-workers.ts`).
 *
 * Capacity bounds the queues in progress, but for queues that only wait for their endpoint. While there is no capacity
 * the range of the workspace with the fewest queues in progress comes first. A range that has waited for a time slice
 * returns to the broker for any process.
 *
 * Between `platform/src/consumers/queue-consumers.ts`, which runs the jobs, and `deliver-webhook.ts`.
 */
import type { FoundLane } from '@sluice/database/delivery/lanes';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { LANES_A_RANGE, type LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import type { TakenLane } from '../lane/lane-drain-deps.ts';

/** A lease of a queue that was claimed with its range. */
export interface TakenRangeLane extends TakenLane {
  readonly claimed: FoundLane;
}

/** How long a queue of a range may start requests. With more to send, it is then woken by itself. */
export interface RangeTurn {
  readonly timeSliceMs: number;
  readonly isPlaceWanted: () => boolean;
}

export interface RangeDrainsOptions {
  /** Claims the queues of a range that are due. */
  readonly claim: (range: LaneRange) => Promise<readonly TakenRangeLane[]>;
  /** Drains a claimed queue. Resolves once it has ended, or only waits for its endpoint. */
  readonly drain: (lane: LaneKey, taken: TakenRangeLane, turn: RangeTurn) => Promise<unknown>;
  /** Has the broker wake the range later. */
  readonly wakeAgain: (range: LaneRange) => Promise<void>;
  /** Queues in progress, from which on no range is claimed. A range may exceed it by its width. */
  readonly countMax: number;
  /** How long a range waits for capacity, and the turn of a queue with much to send. */
  readonly timeSliceMs: number;
  /** Called for each queue whose drain failed; its neighbours are not hurt. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * A queue with more to send gives its place back after a time slice, wanted or not. Any process may then take it, so
 * one process does not drain the backlogs of a whole range.
 */
const ONE_ROUND_MAX = 64;
/** The other queues end sooner, unless their logs grow. Each that does not end costs a job, a claim and a read. */
const SHORT_TURN_SLICES = 4;

interface WaitingRange {
  readonly environmentId: number;
  readonly begin: (hasCapacity: boolean) => void;
}

export class RangeDrains {
  readonly #options: RangeDrainsOptions;
  /** Queues in progress by workspace. A claim under way counts as many as it may find. */
  readonly #counts = new Map<number, number>();
  readonly #waiting = new Set<WaitingRange>();
  #count = 0;
  #isClosing = false;
  #onEmpty: () => void = () => {};

  constructor(options: RangeDrainsOptions) {
    this.#options = options;
  }

  /** Queues in progress. A queue that only waits for its endpoint is not counted. */
  get count(): number {
    return this.#count;
  }

  /** True if others wait for the place of a queue in progress. */
  get isPlaceWanted(): boolean {
    return this.#isClosing || this.#waiting.size > 0;
  }

  /**
   * Runs one wake-up of a range. Resolves once its drains have begun, or the broker has the range again.
   *
   * @throws if the claim failed, or the broker did not take the range back; the reconciliation loop finds the queues.
   */
  async wake(range: LaneRange): Promise<void> {
    const { environmentId } = range;
    if (!(await this.#hasCapacity(environmentId))) return this.#options.wakeAgain(range);
    try {
      for (const taken of await this.#options.claim(range)) this.#begin(taken);
    } finally {
      this.#add(environmentId, -LANES_A_RANGE);
    }
  }

  /** Resolves when the last drain has ended. Call it after the last wake-up. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
  }

  #begin(taken: TakenRangeLane): void {
    const { drain, onFailure } = this.#options;
    const { environmentId, webhookId } = taken.claimed;
    this.#add(environmentId, 1);
    void drain({ environmentId, webhookId }, taken, this.#turnOf(taken.claimed))
      .catch(onFailure)
      .finally(() => this.#add(environmentId, -1));
  }

  #turnOf({ lastSequence, cursor }: FoundLane): RangeTurn {
    const { timeSliceMs } = this.#options;
    if (lastSequence - cursor > ONE_ROUND_MAX) return { timeSliceMs, isPlaceWanted: () => true };
    const isPlaceWanted = () => this.isPlaceWanted;
    return { timeSliceMs: timeSliceMs * SHORT_TURN_SLICES, isPlaceWanted };
  }

  /** If true, places are taken for the claim. */
  async #hasCapacity(environmentId: number): Promise<boolean> {
    if (this.#count < this.#options.countMax && this.#waiting.size === 0) {
      this.#add(environmentId, LANES_A_RANGE);
      return true;
    }
    return new Promise((resolve) => {
      const waiting: WaitingRange = {
        environmentId,
        begin: (hasCapacity) => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          if (hasCapacity) this.#add(environmentId, LANES_A_RANGE);
          resolve(hasCapacity);
        },
      };
      const timer = setTimeout(() => waiting.begin(false), this.#options.timeSliceMs);
      this.#waiting.add(waiting);
    });
  }

  #add(environmentId: number, change: number): void {
    this.#count += change;
    const count = (this.#counts.get(environmentId) ?? 0) + change;
    if (count === 0) this.#counts.delete(environmentId);
    else this.#counts.set(environmentId, count);
    if (change < 0 && this.#count < this.#options.countMax) this.#next()?.begin(true);
    if (this.#count === 0) this.#onEmpty();
  }

  /** The range of the workspace with the fewest queues in progress; of equals the one that waits longest. */
  #next(): WaitingRange | undefined {
    const countOf = ({ environmentId }: WaitingRange) => this.#counts.get(environmentId) ?? 0;
    let next: WaitingRange | undefined;
    for (const waiting of this.#waiting)
      if (!next || countOf(waiting) < countOf(next)) next = waiting;
    return next;
  }
}
