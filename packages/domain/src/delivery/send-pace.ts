/**
 * Limits the requests to one webhook to a rate, evenly spaced.
 *
 * A lane is drained by one worker after another, one time slice at a time. So all that is remembered is the earliest
 * time of the next start, which is kept with the lane, and the next drain goes on from there. Timers and wake-ups are
 * late by some milliseconds, so starts may run ahead of their even spacing by a tenth of a second to reach the rate: in
 * any second there are at most the rate, a tenth of it and one more. (The generic cell rate algorithm.)
 */
const SECOND_MS = 1_000;
const AHEAD_MS_MAX = 100;

export class SendPace {
  readonly #intervalMs: number;
  /** When the next start is due by even spacing. */
  #dueAtMs: number;

  /** @param earliestAtMs - the last value of `nextStartAtMs`; null for a lane without one. */
  constructor(ratePerSecond: number, earliestAtMs: number | null, nowMs: number) {
    this.#intervalMs = SECOND_MS / ratePerSecond;
    const due = earliestAtMs === null ? nowMs : earliestAtMs + AHEAD_MS_MAX;
    // A clock that was set back must not stop a webhook for that long.
    this.#dueAtMs = Math.min(due, nowMs + AHEAD_MS_MAX + this.#intervalMs);
  }

  /** How long until a request may be started; 0 if it may be now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.nextStartAtMs - nowMs));
  }

  /** A request is started. */
  start(nowMs: number): void {
    this.#dueAtMs = Math.max(this.#dueAtMs, nowMs) + this.#intervalMs;
  }

  /** To be kept with the lane. Not a whole number: rounded down it would let more through than the rate. */
  get nextStartAtMs(): number {
    return this.#dueAtMs - AHEAD_MS_MAX;
  }
}
