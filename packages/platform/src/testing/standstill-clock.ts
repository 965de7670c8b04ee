/**
 * A clock that hardly moves while a process stands still.
 *
 * For bounds that only the product may break. Each tick asks the processes under test for a trivial answer, such as `/livez` or `select 1`. A tick is 200 ms at
 * most, however late the answers are: a busy machine has stopped one of the processes then.
 */
import { setTimeout as sleep } from 'node:timers/promises';

const TICK_MS = 50;
const TICK_MS_MAX = 200;

export class StandstillClock {
  readonly #ask: () => Promise<unknown>;
  readonly #ticking: Promise<void>;
  #passedMs = 0;
  #tickedAtMs = performance.now();
  #isStopped = false;

  /** Begins at 0. */
  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask;
    this.#ticking = this.#tick();
  }

  get nowMs(): number {
    return this.#passedMs + Math.min(TICK_MS_MAX, performance.now() - this.#tickedAtMs);
  }

  /** Resolves when no question is under way any more. */
  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#ticking;
  }

  async #tick(): Promise<void> {
    while (!this.#isStopped) {
      await sleep(TICK_MS);
      await this.#ask().catch(() => undefined);
      this.#passedMs = this.nowMs;
      this.#tickedAtMs = performance.now();
    }
  }
}
