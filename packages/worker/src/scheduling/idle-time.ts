/**
 * Idle time of the event loop. Without idle time, an answer that comes late is no sign about the endpoint, and one more
 * request at a time would only make all of them later.
 *
 * Used by `lane-drain.ts`, to which `main.ts` gives the event loop's own count.
 */
export interface IdleTimeOptions {
  /** Idle time of the event loop in all. Milliseconds. */
  readonly idleMs: () => number;
  /** Milliseconds, never set back. */
  readonly monotonicNow: () => number;
}

const LOOK_INTERVAL_MS = 20;
/** Reading the event loop's count is expensive and each request asks, so it is read no more often. */
const READ_INTERVAL_MS = 1;
/** With less than this part of the time idle, one more request at a time would not be answered sooner. */
const SHARE_MIN = 0.25;

export class IdleTime {
  readonly #options: IdleTimeOptions;
  #readAtMs: number;
  #idleMs: number;
  #lookedAtMs: number;
  #idleBeforeMs: number;
  #isShort = false;

  constructor(options: IdleTimeOptions) {
    this.#options = options;
    this.#readAtMs = options.monotonicNow();
    this.#idleMs = options.idleMs();
    this.#lookedAtMs = this.#readAtMs;
    this.#idleBeforeMs = this.#idleMs;
  }

  /** In all, since the process began, as of a millisecond ago at most. */
  totalMs(): number {
    return this.#read(this.#options.monotonicNow());
  }

  /** True if there was almost no idle time lately. */
  isShort(): boolean {
    const nowMs = this.#options.monotonicNow();
    const elapsedMs = nowMs - this.#lookedAtMs;
    if (elapsedMs >= LOOK_INTERVAL_MS) {
      const idleMs = this.#read(nowMs);
      this.#isShort = idleMs - this.#idleBeforeMs < elapsedMs * SHARE_MIN;
      this.#lookedAtMs = nowMs;
      this.#idleBeforeMs = idleMs;
    }
    return this.#isShort;
  }

  #read(nowMs: number): number {
    if (nowMs - this.#readAtMs >= READ_INTERVAL_MS) {
      this.#readAtMs = nowMs;
      this.#idleMs = this.#options.idleMs();
    }
    return this.#idleMs;
  }
}
