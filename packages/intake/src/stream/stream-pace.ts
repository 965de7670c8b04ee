/**
 * Maximum reading speed of one stream. A sender that is faster waits; it is never refused for it.
 *
 * Compressed bytes cost their sender a thousandth of their size, and a blank line costs a byte, so neither the size of
 * a request nor its operations bound the work. Both bounds are above the speed of one process with real lines (about
 * 100,000 a second of 200 bytes each on one core, `benchmarks/`).
 */

const INFLATED_BYTES_PER_SECOND_MAX = 64 * 1_048_576;
const LINES_PER_SECOND_MAX = 500_000;
/** A stream that was slower may be ahead by so much. */
const BURST_MS = 100;
/** So that a stop ends a stream sooner than its pace would. */
const LOOK_INTERVAL_MS = 50;

export class StreamPace {
  readonly #monotonicNow: () => number;
  #paidUntilMs: number;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
    this.#paidUntilMs = monotonicNow() - BURST_MS;
  }

  /** Counts the read bytes and lines, blank lines too. */
  spend(sizeBytes: number, lineCount: number): void {
    const seconds = Math.max(
      sizeBytes / INFLATED_BYTES_PER_SECOND_MAX,
      lineCount / LINES_PER_SECOND_MAX,
    );
    this.#paidUntilMs =
      Math.max(this.#paidUntilMs, this.#monotonicNow() - BURST_MS) + seconds * 1_000;
  }

  /** Milliseconds until more may be read; 0 or less if it may be read now. */
  waitMs(): number {
    return this.#paidUntilMs - this.#monotonicNow();
  }

  /** Waits until more may be read, or `isOver`. */
  async wait(
    pause: (durationMs: number) => Promise<unknown>,
    isOver: () => boolean,
  ): Promise<void> {
    for (let waitMs = this.waitMs(); waitMs >= 1 && !isOver(); waitMs = this.waitMs())
      await pause(Math.min(waitMs, LOOK_INTERVAL_MS));
  }
}
