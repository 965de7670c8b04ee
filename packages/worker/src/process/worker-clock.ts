/**
 * Limits of a worker's own clock: a worker whose clock is minutes from Postgres' may not work by it
 * (`domain/src/values/clock-difference.ts`).
 *   start ──────▶ require ── wrong twice ─▶ the start ends
 *   each minute ▶ watch ──── wrong twice ─▶ the worker ends
 *   a delivery is given up ────▶ confirmGivingUp ──── ahead twice ──▶ the worker ends, and it is not written down
 *   a delivery is put off ─────▶ confirmFailure ───── behind twice ─▶ the same
 * The last two exist because a clock may jump between two minutes. Waiting deliveries are then days too old at once: by
 * the clock itself, or later by a right one, since a delivery's days count from its first attempt. The monotonic clock,
 * which cannot be set, shows a jump back; only then is Postgres asked about a failure.
 */
import { AppError } from '@sluice/domain/values/errors';
import {
  clockWrong,
  isEndBelieved,
  judgeClock,
  judgeGivingUp,
  requireUsableClock,
  type ClockDifference,
  type ClockVerdict,
} from '@sluice/domain/values/clock-difference';

export interface WorkerClockOptions {
  readonly measure: () => Promise<ClockDifference>;
  /** The clock that is measured, Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds, never set. */
  readonly monotonicNow: () => number;
  /** Called for each measurement. */
  readonly onMeasured: (difference: ClockDifference) => void;
  /** Ends the worker. */
  readonly fail: (error: unknown) => void;
}

export class WorkerClock {
  readonly #options: WorkerClockOptions;
  /** Difference of the clock from the monotonic one when it was last found right; undefined if it never was. */
  #rightAheadMs: number | undefined;

  constructor(options: WorkerClockOptions) {
    this.#options = options;
  }

  /** @throws AppError CLOCK_WRONG if two measurements find it wrong. */
  async require(): Promise<void> {
    if (this.#judge(await this.#options.measure()) === 'unusable') {
      const again = await this.#options.measure();
      this.#judge(again);
      requireUsableClock(again);
    }
  }

  /** Ends the worker if a second measurement finds it wrong too. */
  async watch(difference: ClockDifference): Promise<void> {
    if (this.#judge(difference) !== 'unusable') return;
    const again = await this.#options.measure();
    if (this.#judge(again) === 'unusable') this.#options.fail(clockWrong(again));
  }

  /**
   * Called before a delivery is recorded as failed and to be tried again. Asks Postgres only if the clock has jumped.
   *
   * @param endedAtMs - when the attempt ended, by this worker's clock as it was then.
   * @throws AppError CLOCK_WRONG if the clock was behind, of which the worker ends unless it is right again. Also if
   * Postgres
   *   cannot be asked. The later holder of the lane makes the attempt again.
   */
  async confirmFailure(endedAtMs: number): Promise<void> {
    const { measure, now, monotonicNow, fail } = this.#options;
    const rightNowMs =
      this.#rightAheadMs === undefined ? Infinity : monotonicNow() + this.#rightAheadMs;
    if (isEndBelieved(endedAtMs, rightNowMs)) return;
    const difference = await measure();
    if (isEndBelieved(endedAtMs, now() - difference.aheadMs - difference.uncertaintyMs)) {
      this.#judge(difference);
      return;
    }
    if (this.#judge(difference) === 'unusable') {
      const again = await measure();
      if (this.#judge(again) === 'unusable') {
        fail(clockWrong(again));
        throw clockWrong(again);
      }
    }
    throw new AppError(
      'CLOCK_WRONG',
      'an attempt ended long ago, or the clock was wrong; the attempt is not stored, and is made again',
    );
  }

  /**
   * Called before a delivery is recorded as given up.
   *
   * @param endedAtMs - when its last attempt ended, by this worker's clock as it was then.
   * @throws AppError CLOCK_WRONG if the clock was ahead, of which the worker ends. Also if that is not certain. The
   * later holder
   *   of the lane tries it again.
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
      throw new Error(
        'Postgres did not return its time soon enough, so the worker does not give up deliveries yet',
      );
    const error = clockWrong(judged);
    fail(error);
    throw error;
  }

  #judge(difference: ClockDifference): ClockVerdict {
    const { now, monotonicNow, onMeasured } = this.#options;
    onMeasured(difference);
    const verdict = judgeClock(difference);
    if (verdict === 'alike' || verdict === 'different') this.#rightAheadMs = now() - monotonicNow();
    return verdict;
  }
}
