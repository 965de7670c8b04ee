/**
 * Clock of a process for all times in Postgres: the expiry of a code, the next try of a message, the start of a purchase's
 * wait. It is Postgres' time, as it was measured last, and goes on by the monotonic clock. So a machine's clock that is
 * set, or that is wrong, does not change any duration, and the processes of an installation agree.
 *
 * Until it is measured first it is the machine's. A machine that was suspended is behind until the next measurement.
 */
import type { ClockDifference } from '@sluice/domain/values/clock-difference';

export interface DatabaseClockOptions {
  /** The machine's clock, Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds, of a clock that is never set. */
  readonly monotonicNow: () => number;
}

/** A larger difference is corrected at once. Clocks of one time server, and measurements, differ by less. */
const DIFFERENCE_MS_MIN = 50;
/** A difference counts if it is so many times its own possible error. */
const CERTAINTY = 4;

export class DatabaseClock {
  readonly #options: DatabaseClockOptions;
  /** This time less the monotonic one. */
  #aheadOfMonotonicMs: number;

  constructor(options: DatabaseClockOptions) {
    this.#options = options;
    this.#aheadOfMonotonicMs = options.now() - options.monotonicNow();
  }

  /** Unix milliseconds, whole ones. */
  readonly now = (): number => Math.round(this.#options.monotonicNow() + this.#aheadOfMonotonicMs);

  /** @param difference - of the machine's clock from Postgres', measured just now. */
  readonly noticeDifference = ({ aheadMs, uncertaintyMs }: ClockDifference): void => {
    const { now, monotonicNow } = this.#options;
    const measuredMs = now() - aheadMs - monotonicNow();
    const offByMs = Math.abs(measuredMs - this.#aheadOfMonotonicMs);
    // If the measurement is not a number, this is false too.
    if (offByMs > Math.max(DIFFERENCE_MS_MIN, CERTAINTY * uncertaintyMs))
      this.#aheadOfMonotonicMs = measuredMs;
  };
}
