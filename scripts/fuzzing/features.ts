/**
 * Features that the inputs have shown so far.
 *
 * One is a part of an instrumented file, or a class of counts of a part of a target's own code. With classes a deeper list
 * is new, and a list of 41 beside 40 is not.
 */
import { countReached } from './instrument.ts';

/** 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more. */
const CLASS_COUNT = 8;
const classOf = (count: number): number =>
  count < 4 ? count - 1 : count < 8 ? 3 : count < 16 ? 4 : count < 32 ? 5 : count < 128 ? 6 : 7;

export class Features {
  readonly #seen = new Set<number>();
  #flagCount = 0;

  get count(): number {
    return this.#flagCount + this.#seen.size;
  }

  /**
   * Notes the features of the last input. Sets the counts to 0.
   *
   * @param counts - of the target's own parts (`FuzzTarget.counts`).
   * @returns whether anything is new.
   */
  note(counts: Uint8Array | undefined): boolean {
    const before = this.count;
    this.#flagCount = countReached();
    for (const [part, count] of counts?.entries() ?? [])
      if (count > 0) this.#seen.add(part * CLASS_COUNT + classOf(count));
    counts?.fill(0);
    return this.count > before;
  }
}
