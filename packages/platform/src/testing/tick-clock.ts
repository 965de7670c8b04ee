/**
 * Time of a test in ticks of a timer.
 *
 * A standstill of a busy machine is one tick, however long it is: the tested code, in this process or beside it, could
 * not run either. Late ticks make this clock slow, so a bound in ticks is looser than the same one in milliseconds.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export class TickClock {
  readonly #tickMs: number;
  readonly #ticking: NodeJS.Timeout;
  #tickCount = 0;

  /** Begins at 0. */
  constructor(tickMs: number) {
    this.#tickMs = tickMs;
    this.#ticking = setInterval(() => this.#tickCount++, tickMs).unref();
  }

  get tickCount(): number {
    return this.#tickCount;
  }

  get nowMs(): number {
    return this.#tickCount * this.#tickMs;
  }

  /** The time stands. */
  stop(): void {
    clearInterval(this.#ticking);
  }

  /** Lets ticks pass, `durationMs` at most, until the condition holds. */
  static async pass(
    tickMs: number,
    durationMs: number,
    isOver: () => boolean | Promise<boolean> = () => false,
  ): Promise<void> {
    for (let passedMs = 0; passedMs < durationMs && !(await isOver()); passedMs += tickMs)
      await sleep(tickMs);
  }
}
