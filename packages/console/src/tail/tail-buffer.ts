/** The latest lines of a tail, and counts of all of them. Drawn now and then; counted always. */
import type { DroppedLines, TailLine, TailRow } from './tail-line.ts';

export const ROW_COUNT_MAX = 5_000;

export interface TailCounts {
  readonly lineCount: number;
  readonly refusedCount: number;
  readonly droppedCount: number;
}

const REFUSED: ReadonlySet<string> = new Set(['refused', 'rate_limited', 'overloaded']);

export class TailBuffer {
  #rows: TailRow[] = [];
  #number = 0;
  #lineCount = 0;
  #refusedCount = 0;
  #droppedCount = 0;

  add(rows: readonly (TailLine | DroppedLines)[]): void {
    for (const row of rows) {
      this.#rows.push({ ...row, number: ++this.#number });
      if (row.kind === 'dropped') {
        this.#droppedCount += row.count ?? 0;
        continue;
      }
      this.#lineCount++;
      if (REFUSED.has(row.outcome)) this.#refusedCount++;
    }
    // In one go now and then, since each cut copies the rest.
    if (this.#rows.length > 2 * ROW_COUNT_MAX) this.#rows = this.#rows.slice(-ROW_COUNT_MAX);
  }

  clear(): void {
    this.#rows = [];
    this.#lineCount = 0;
    this.#refusedCount = 0;
    this.#droppedCount = 0;
  }

  /** Newest first. */
  latest(count: number): TailRow[] {
    return this.#rows.slice(-count).toReversed();
  }

  /** Oldest first. */
  all(): readonly TailRow[] {
    return this.#rows.slice(-ROW_COUNT_MAX);
  }

  counts(): TailCounts {
    return {
      lineCount: this.#lineCount,
      refusedCount: this.#refusedCount,
      droppedCount: this.#droppedCount,
    };
  }
}
