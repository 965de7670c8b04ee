/** The latest lines of a tail, and counts of all of them. Drawn now and then; counted always. */
import { isRefused, type LastMinute, LastMinuteCounts } from './last-minute.ts';
import type { DroppedLines, TailLine, TailRow } from './tail-line.ts';

export const ROW_COUNT_MAX = 5_000;

export interface TailCounts {
  readonly lineCount: number;
  readonly refusedCount: number;
  readonly droppedCount: number;
}

export class TailBuffer {
  #rows: TailRow[] = [];
  #number = 0;
  #lineCount = 0;
  #refusedCount = 0;
  #droppedCount = 0;
  readonly #lastMinute = new LastMinuteCounts();

  add(rows: readonly (TailLine | DroppedLines)[]): void {
    for (const row of rows) {
      this.#rows.push({ ...row, number: ++this.#number });
      this.#lastMinute.add(row);
      if (row.kind === 'dropped') {
        this.#droppedCount += row.count ?? 0;
        continue;
      }
      this.#lineCount++;
      if (isRefused(row)) this.#refusedCount++;
    }
    // In one go now and then, since each cut copies the rest.
    if (this.#rows.length > 2 * ROW_COUNT_MAX) this.#rows = this.#rows.slice(-ROW_COUNT_MAX);
  }

  /** Of the last row that came; 0 before the first. */
  get lastNumber(): number {
    return this.#number;
  }

  /** The tail is open from now on. */
  open(nowMs: number): void {
    this.#lastMinute.open(nowMs);
  }

  clear(): void {
    this.#rows = [];
    this.#lineCount = 0;
    this.#refusedCount = 0;
    this.#droppedCount = 0;
    this.#lastMinute.clear();
  }

  lastMinute(nowMs: number): LastMinute {
    return this.#lastMinute.at(nowMs);
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
