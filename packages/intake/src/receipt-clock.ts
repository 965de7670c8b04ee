/**
 * The time at which intake takes calls. It is the machine's, unless that differs from Postgres' by more than clocks do that
 * follow a time server: then it is Postgres', as far as that is known. So the times of calls that a client sends to one
 * intake after another go forward, also where the clock of one is a minute wrong: lists of activities are in their order.
 */
import type { ClockDifference } from '@sluice/domain/values/clock-difference';

export interface ReceiptClockOptions {
  /** The machine's clock, Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds, of a clock that is never set. */
  readonly monotonicNow: () => number;
}

/** More than the clocks of machines differ that follow one time server. */
const DIFFERENCE_MS_MIN = 50;
/** A difference is believed if it is so many times what it may be wrong by. */
const CERTAINTY = 4;
/** A clock that goes back by less stands instead: the one that is measured anew is never exactly the one of before. */
const STANDSTILL_MS_MAX = 1_000;

/** Of several, since one answer of a busy machine is milliseconds late. */
const MEASUREMENTS = 8;

export class ReceiptClock {
  readonly #options: ReceiptClockOptions;
  /** Postgres' clock less the monotonic one; undefined: the machine's clock is right. */
  #correctedByMs: number | undefined;
  #lastMs = -Infinity;

  constructor(options: ReceiptClockOptions) {
    this.#options = options;
  }

  /** Unix milliseconds, whole ones. Never goes back by less than a second. */
  now(): number {
    const { now, monotonicNow } = this.#options;
    const nowMs =
      this.#correctedByMs === undefined ? now() : Math.round(monotonicNow() + this.#correctedByMs);
    const goesBackMs = this.#lastMs - nowMs;
    if (goesBackMs > 0 && goesBackMs < STANDSTILL_MS_MAX) return this.#lastMs;
    this.#lastMs = nowMs;
    return nowMs;
  }

  /** Measures several times and notices the most certain. What cannot be measured changes nothing. */
  async measure(measure: () => Promise<ClockDifference>): Promise<void> {
    let best: ClockDifference | undefined;
    try {
      for (let count = 0; count < MEASUREMENTS; count++) {
        const found = await measure();
        if (best === undefined || found.uncertaintyMs < best.uncertaintyMs) best = found;
      }
    } catch {
      // The watch of the clock tells of it.
    }
    if (best !== undefined) this.noticeDifference(best);
  }

  /** @param difference - of the machine's clock, measured just now. */
  noticeDifference({ aheadMs, uncertaintyMs }: ClockDifference): void {
    const { now, monotonicNow } = this.#options;
    const isWrong = Math.abs(aheadMs) > Math.max(DIFFERENCE_MS_MIN, CERTAINTY * uncertaintyMs);
    this.#correctedByMs = isWrong ? now() - aheadMs - monotonicNow() : undefined;
  }
}
