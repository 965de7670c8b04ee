/**
 * The time at which intake takes calls. It is the machine's, unless that differs from Postgres' by more than clocks do
 * that follow a time server: then it is Postgres', as far as that is known. So the times of calls that a client sends
 * to one intake after another go forward, also if the clock of one is a minute wrong: lists of activities are in their
 * order.
 */
import type { ClockDifference } from '@sluice/domain/values/clock-difference';
import { TurnClock } from './turn-clock.ts';

export interface ReceiptClockOptions {
  /** The machine's clock, Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds, of a clock that is never set. */
  readonly monotonicNow: () => number;
}

/** More than the clocks of machines differ that follow one time server. */
const DIFFERENCE_MS_MIN = 50;
/** A difference is believed if it is so many times its uncertainty. */
const CERTAINTY = 4;
/** A clock that goes back by less stands instead: the one that is measured anew is never exactly the one of before. */
const STANDSTILL_MS_MAX = 1_000;

/** The times of calls are so far ahead at most if flushes are quicker than a millisecond. */
const AHEAD_MS_MAX = 2;

/** Of several, since one answer of a busy machine is milliseconds late. */
const MEASUREMENTS = 8;

export class ReceiptClock {
  readonly #options: ReceiptClockOptions;
  /** Postgres' clock less the monotonic one; undefined while the machine's clock is right. */
  #correctedByMs: number | undefined;
  #lastMs = -Infinity;
  #answeredMs = -Infinity;
  readonly #turnClock = new TurnClock(() => this.now());
  /** As {@link now}, but of this turn of the event loop, or of its part after {@link answered}: for calls. */
  readonly turnNow = this.#turnClock.now;

  constructor(options: ReceiptClockOptions) {
    this.#options = options;
  }

  /** Unix milliseconds, whole ones. Never goes back by less than a second, and goes on after {@link answered}. */
  now(): number {
    const { now, monotonicNow } = this.#options;
    const nowMs =
      this.#correctedByMs === undefined ? now() : Math.round(monotonicNow() + this.#correctedByMs);
    // Of nearly all calls, without the rest.
    if (nowMs >= this.#lastMs && nowMs > this.#answeredMs) return (this.#lastMs = nowMs);
    const isAnswered = nowMs <= this.#answeredMs && this.#answeredMs - nowMs < AHEAD_MS_MAX;
    const atMs = isAnswered ? this.#answeredMs + 1 : nowMs;
    const goesBackMs = this.#lastMs - atMs;
    if (goesBackMs > 0 && goesBackMs < STANDSTILL_MS_MAX) return this.#lastMs;
    this.#lastMs = atMs;
    return atMs;
  }

  /**
   * Calls are about to be answered: a later call gets a later millisecond than they, so that it is listed after them.
   * Within a millisecond, only the calls of one flush are in order (`database/src/events/events.ts`).
   */
  answered(): void {
    this.#answeredMs = this.#lastMs;
    this.#turnClock.forget();
  }

  /**
   * Measures several times and notices the most certain.
   *
   * @throws the error of a measurement that failed. It has no effect, and those before it are noticed.
   */
  async measure(measure: () => Promise<ClockDifference>): Promise<void> {
    let best: ClockDifference | undefined;
    try {
      for (let count = 0; count < MEASUREMENTS; count++) {
        const found = await measure();
        if (best === undefined || found.uncertaintyMs < best.uncertaintyMs) best = found;
      }
    } finally {
      if (best !== undefined) this.noticeDifference(best);
    }
  }

  /** @param difference - of the machine's clock, measured just now. */
  noticeDifference({ aheadMs, uncertaintyMs }: ClockDifference): void {
    const { now, monotonicNow } = this.#options;
    const isWrong = Math.abs(aheadMs) > Math.max(DIFFERENCE_MS_MIN, CERTAINTY * uncertaintyMs);
    this.#correctedByMs = isWrong ? now() - aheadMs - monotonicNow() : undefined;
  }
}
