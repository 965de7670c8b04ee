/**
 * How many calls a token may make a minute in this process, told in the headers of every answer
 * (`RateLimit-Limit`, `-Remaining`, `-Reset`).
 *
 * Fixed windows of a minute, one counter a token: with n processes n times as much gets through.
 */

export interface RateState {
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly isExceeded: boolean;
}

const WINDOW_MS = 60_000;
const TOKEN_COUNT_MAX = 100_000;

export class TokenRate {
  readonly perMinute: number;
  readonly #now: () => number;
  #windowEndsAtMs = 0;
  #counts = new Map<number, number>();

  constructor(perMinute: number, now: () => number) {
    this.perMinute = perMinute;
    this.#now = now;
  }

  /** Counts one call. */
  take(credentialId: number): RateState {
    const nowMs = this.#now();
    if (nowMs >= this.#windowEndsAtMs || this.#counts.size >= TOKEN_COUNT_MAX) {
      this.#counts = new Map();
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
    }
    const count = (this.#counts.get(credentialId) ?? 0) + 1;
    this.#counts.set(credentialId, count);
    return {
      remaining: Math.max(0, this.perMinute - count),
      resetSeconds: Math.max(1, Math.ceil((this.#windowEndsAtMs - nowMs) / 1000)),
      isExceeded: count > this.perMinute,
    };
  }
}
