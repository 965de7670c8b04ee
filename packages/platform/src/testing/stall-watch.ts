/**
 * Measured standstills of this process, or of a server.
 *
 * For guarantees of which a standstill is an exception. A test may try again after a measured one alone.
 */
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_INTERVAL_MS = 20;
const TRIES_MAX = 3;

export class StallWatch {
  readonly #ask: () => Promise<unknown>;
  readonly #looking: Promise<void>;
  #lookedAtMs = performance.now();
  #longestMs = 0;
  #isStopped = false;

  /** @param ask - for a trivial answer of the servers under test, such as `select 1`. */
  constructor(ask: () => Promise<unknown> = () => Promise.resolve()) {
    this.#ask = ask;
    this.#looking = this.#look();
  }

  /** The longest time between two looks until now, or until the stop. */
  get longestMs(): number {
    if (this.#isStopped) return this.#longestMs;
    return Math.max(this.#longestMs, performance.now() - this.#lookedAtMs);
  }

  /** Resolves when no question is under way any more. */
  stop(): Promise<void> {
    this.#longestMs = this.longestMs;
    this.#isStopped = true;
    return this.#looking;
  }

  async #look(): Promise<void> {
    while (!this.#isStopped) {
      await sleep(LOOK_INTERVAL_MS);
      await this.#ask().catch(() => undefined);
      if (this.#isStopped) return;
      this.#longestMs = this.longestMs;
      this.#lookedAtMs = performance.now();
    }
  }
}

/**
 * Tries again, three times in all, if a try failed and something stood still during it.
 *
 * @param stallMs - the shortest standstill that can make it fail.
 * @param attempt - gets the number of the try, from 1.
 * @param ask - as of `StallWatch`.
 */
export async function repeatIfStalled<Result>(
  stallMs: number,
  attempt: (tries: number) => Promise<Result>,
  ask?: () => Promise<unknown>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const watch = new StallWatch(ask);
    try {
      return await attempt(tries);
    } catch (error) {
      if (tries === TRIES_MAX || watch.longestMs < stallMs) throw error;
    } finally {
      await watch.stop();
    }
  }
}
