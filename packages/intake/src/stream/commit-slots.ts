/**
 * How many groups of streams are committed at the same time, of all streams of a process.
 *
 * A flush carries what waits for it, and a single call waits for the flush that it is in: with the groups of forty streams,
 * 20 MB, its p99 was six times that without (`npm run bench -- hostile`). One stream has one group in flight, so it loses
 * nothing. Workspaces take turns.
 */
import { FairQueue } from '../http/fair-queue.ts';

/** 2 MB at most: a flush of a few milliseconds. */
const GROUP_COUNT_MAX = 4;

export class CommitSlots {
  readonly #waiting = new FairQueue<() => void>();
  #takenCount = 0;

  /** Resolves when `owner` may commit a group; then `release` must be called once. */
  async take(owner: number): Promise<void> {
    if (this.#takenCount < GROUP_COUNT_MAX) {
      this.#takenCount++;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.add(owner, resolve));
  }

  release(): void {
    const next = this.#waiting.take();
    // The slot passes on.
    if (next !== undefined) next();
    else this.#takenCount--;
  }
}
