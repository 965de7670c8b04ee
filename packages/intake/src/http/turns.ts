/**
 * Turns on the event loop for long work: one an iteration, so that sockets are served between two of them.
 *
 * ```
 *   sockets ─▶ one turn (2 ms) ─▶ sockets ─▶ one turn ─▶ …
 * ```
 *
 * Work is divided by time: a megabyte of newlines or of nested arrays takes a hundred times as long as a megabyte of
 * events. Owners (workspaces) take turns, and the work of one owner waits in its order of arrival: a workspace that
 * sends forty large bodies delays another by one turn.
 */
import { FairQueue } from './fair-queue.ts';

/** An honest caller waits for two or three turns: when its call is read, and when the broker has confirmed it. */
const TURN_MS_MAX = 2;

export interface Turn {
  /** True when the work must wait for its next turn. */
  isOver(): boolean;
}

export class Turns {
  readonly #monotonicNow: () => number;
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
  }

  /** Resolves when `owner` has its turn. */
  async next(owner: number): Promise<Turn> {
    await new Promise<void>((resolve) => {
      this.#waiting.add(owner, resolve);
      this.#schedule();
    });
    const endsAtMs = this.#monotonicNow() + TURN_MS_MAX;
    return { isOver: () => this.#monotonicNow() >= endsAtMs };
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.take()?.();
      if (!this.#waiting.isEmpty) this.#schedule();
    });
  }
}
