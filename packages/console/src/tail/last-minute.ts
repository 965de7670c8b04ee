/** Counts of calls and refusals in the last minute. From the lines of a live tail. Pure. */
import type { TailRow } from './tail-line.ts';

const MINUTE_MS = 60_000;
const REFUSED: ReadonlySet<string> = new Set(['refused', 'rate_limited', 'overloaded']);

export interface LastMinute {
  readonly callCount: number;
  /** Of the calls, 0 to 100. */
  readonly refusedPercent: number;
}

/**
 * @param rows - oldest first. Deliveries are no calls. Lines that were dropped count as calls that came when the line after
 *   them did.
 */
export function lastMinuteOf(rows: readonly TailRow[], nowMs: number): LastMinute {
  let callCount = 0;
  let refusedCount = 0;
  let droppedCount = 0;
  for (const row of rows) {
    if (row.kind === 'dropped') {
      droppedCount += row.count ?? 0;
      continue;
    }
    if (row.at_ms > nowMs - MINUTE_MS && row.kind !== 'reported') {
      callCount += 1 + droppedCount;
      if (REFUSED.has(row.outcome)) refusedCount++;
    }
    droppedCount = 0;
  }
  const refusedPercent = callCount === 0 ? 0 : (100 * refusedCount) / callCount;
  return { callCount, refusedPercent };
}
