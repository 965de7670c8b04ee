/**
 * A clock that hardly moves while the machine stands still.
 *
 * For bounds that only the product may break. Each tick asks for a trivial answer from outside of the product.
 * A bystander gives it, or a server over a connection of the test's own, without locks. A tick is 200 ms at
 * most, however late the answers are. A product that keeps the whole machine from its work makes this clock slow too, so
 * a test with it also needs a generous bound by the clock on the wall.
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
