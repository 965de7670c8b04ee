/**
 * What a worker may do by its own clock: nothing by one that is minutes from Postgres' (`domain/src/clock-difference.ts`).
 *
 *   start ──────▶ require ── wrong twice ─▶ the start ends
 *   each minute ▶ watch ──── wrong twice ─▶ the worker ends
 *   a delivery is given up ▶ confirmGivingUp ── ahead twice ─▶ the worker ends, and it is not written down
 *
 * The last because a clock may jump between two minutes: what waits is then found to be days too old at once.
 */
import {
  clockWrong,
  judgeClock,
  judgeGivingUp,
  requireUsableClock,
  type ClockDifference,
} from '@sluice/domain/clock-difference';

export interface WorkerClockOptions {
  readonly measure: () => Promise<ClockDifference>;
  /** The clock that is measured, Unix milliseconds. */
  readonly now: () => number;
  /** Ends the worker. */
  readonly fail: (error: unknown) => void;
}

export class WorkerClock {
  readonly #options: WorkerClockOptions;

  constructor(options: WorkerClockOptions) {
    this.#options = options;
  }

  /** @throws AppError CLOCK_WRONG where two measurements say so. */
  async require(): Promise<void> {
    if (judgeClock(await this.#options.measure()) === 'unusable')
      requireUsableClock(await this.#options.measure());
  }

  /** Ends the worker where another measurement says the same. */
  async watch(difference: ClockDifference): Promise<void> {
    if (judgeClock(difference) !== 'unusable') return;
    const again = await this.#options.measure();
    if (judgeClock(again) === 'unusable') this.#options.fail(clockWrong(again));
  }

  /**
   * Before it is written down that a delivery is given up.
   *
   * @param endedAtMs - when its last attempt ended, by this worker's clock as it was then.
   * @throws where the clock was ahead, of which the worker ends, or where that is not certain; both are tried again by
   * whoever holds the lane then.
   */
  async confirmGivingUp(endedAtMs: number): Promise<void> {
    const { measure, now, fail } = this.#options;
    const judge = async () => {
      const difference = await measure();
      const nowMs = now();
      return {
        verdict: judgeGivingUp(difference, endedAtMs, nowMs),
        aheadMs: endedAtMs - (nowMs - difference.aheadMs),
      };
    };
    let judged = await judge();
    if (judged.verdict === 'ahead') judged = await judge();
    if (judged.verdict === 'right') return;
    if (judged.verdict === 'unclear')
      throw new Error('Postgres did not say in time what time it is, so nothing is given up yet');
    const error = clockWrong(judged);
    fail(error);
    throw error;
  }
}
