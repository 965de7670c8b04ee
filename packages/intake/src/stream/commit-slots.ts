/**
 * How many operations of streams are committed at the same time, of all streams of a process.
 *
 * A flush carries what waits for it, and a single call waits for the flush before its own and for its own. A flush takes
 * some 6 µs an operation (Redis with `appendfsync always`), so with four full groups in it, of forty streams, the p99 of a
 * single call was 47 ms where it is 10 ms without (`npm run bench -- hostile`). One stream has one group in flight, so it
 * loses nothing; the small groups of many slow streams go together. Workspaces take turns.
 */
import { FairQueue } from '../http/fair-queue.ts';

/** As many as one full group has. */
const OPERATION_COUNT_MAX = 1_000;

interface WaitingGroup {
  readonly operationCount: number;
  readonly begin: () => void;
}

export class CommitSlots {
  readonly #waiting = new FairQueue<WaitingGroup>();
  #takenCount = 0;

  /**
   * Resolves when a group of `owner` may be committed; then `release` must be called once with the same count. A group of
   * any size is let in alone.
   */
  async take(owner: number, operationCount: number): Promise<void> {
    await new Promise<void>((begin) => {
      this.#waiting.add(owner, { operationCount, begin });
      this.#beginNext();
    });
  }

  release(operationCount: number): void {
    this.#takenCount -= operationCount;
    this.#beginNext();
  }

  #beginNext(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      const takenCount = this.#takenCount + next.operationCount;
      if (this.#takenCount > 0 && takenCount > OPERATION_COUNT_MAX) return;
      this.#takenCount = takenCount;
      this.#waiting.take();
      next.begin();
    }
  }
}
