/**
 * The broker's clock, as its answers show it.
 *
 * It puts calls in order that intakes keep on their disks, however wrong the intakes' own clocks are.
 *
 * - **It is read by itself**, several times, and the quickest answer counts: an answer is wrong by half of its round
 *   trip at most. A report takes 10 ms in Postgres, which returns the time before it writes to its disk.
 * - **The remaining error is waited out.** A call is given the latest time that it can be, and answered when it can be
 *   no earlier. So a call that is sent after the answer, to any intake, is given a later time (as in Spanner, with the
 *   name commit wait). The wait is a round trip, about 1 ms. Beside `intake-lease.ts`.
 */

export interface BrokerClockOptions {
  /** The broker's clock, milliseconds with fractions: `FlushStage.readClock`. */
  readonly readClock: () => Promise<number>;
  /** Milliseconds, of a clock that is never set. */
  readonly monotonicNow: () => number;
}

interface Difference {
  /** Broker's clock less the monotonic one. */
  readonly differenceMs: number;
  /** It may be so much more or less. */
  readonly uncertaintyMs: number;
  readonly atMs: number;
}

/** More than an uncorrected crystal drifts: an old answer that was quick is better than a new one that was slow. */
const DRIFT = 50e-6;
const READINGS = 8;
/** A time that would go back by less stands instead; by more, the broker's clock was set. */
const STANDSTILL_MS_MAX = 1_000;
/** A broker that was away for so long that drift is more than a tenth of it: no call waits longer. */
const WAIT_MS_MAX = 20;

export class BrokerClock {
  readonly #options: BrokerClockOptions;
  #known: Difference | undefined;
  #lastMs = -Infinity;

  constructor(options: BrokerClockOptions) {
    this.#options = options;
  }

  /** The latest that it can be now; never goes back by less than a second. Undefined until the broker has answered. */
  latest(): number | undefined {
    if (this.#known === undefined) return undefined;
    const latestMs =
      this.#options.monotonicNow() + this.#known.differenceMs + this.#uncertaintyMs(this.#known);
    const goesBackMs = this.#lastMs - latestMs;
    if (goesBackMs <= 0 || goesBackMs >= STANDSTILL_MS_MAX) this.#lastMs = latestMs;
    return this.#lastMs;
  }

  /** Time until it can be no earlier than the last result of {@link latest}. */
  waitMs(): number {
    if (this.#known === undefined) return 0;
    const earliestMs =
      this.#options.monotonicNow() + this.#known.differenceMs - this.#uncertaintyMs(this.#known);
    return Math.min(WAIT_MS_MAX, Math.max(0, this.#lastMs - earliestMs));
  }

  /**
   * Reads it several times.
   *
   * @throws the error of the broker.
   */
  async measure(): Promise<void> {
    const { readClock, monotonicNow } = this.#options;
    for (let count = 0; count < READINGS; count++) {
      const sentAtMs = monotonicNow();
      this.noticeAnswer(await readClock(), sentAtMs, monotonicNow());
    }
  }

  /**
   * Keeps the most certain answer, unless the broker's clock is another one now.
   *
   * @param brokerMs - when it answered, by its clock; the others by the monotonic clock.
   */
  noticeAnswer(brokerMs: number, sentAtMs: number, answeredAtMs: number): void {
    const uncertaintyMs = (answeredAtMs - sentAtMs) / 2;
    const differenceMs = brokerMs - sentAtMs - uncertaintyMs;
    const known = this.#known;
    if (known !== undefined) {
      const knownUncertaintyMs = this.#uncertaintyMs(known);
      const apartMs = Math.abs(differenceMs - known.differenceMs);
      const isSameClock = apartMs <= knownUncertaintyMs + uncertaintyMs;
      if (isSameClock && knownUncertaintyMs < uncertaintyMs) return;
    }
    this.#known = { differenceMs, uncertaintyMs, atMs: answeredAtMs };
  }

  #uncertaintyMs({ uncertaintyMs, atMs }: Difference): number {
    return uncertaintyMs + Math.max(0, this.#options.monotonicNow() - atMs) * DRIFT;
  }
}
