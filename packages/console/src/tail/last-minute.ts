/**
 * Calls and refusals of a live tail's last minute. Pure.
 *
 * They are counted as they come, by second: the rows that the page keeps are fewer than the calls of a busy minute.
 */
import type { DroppedLines, TailLine } from './tail-line.ts';

const MINUTE_SECONDS = 60;
/** Ten minutes: lines of a process whose clock differs have seconds of their own. */
const KEPT_SECONDS_MAX = 600;
const REFUSED: ReadonlySet<string> = new Set(['refused', 'rate_limited', 'overloaded']);

export interface LastMinute {
  readonly callCount: number;
  /** Of the calls, 0 to 100. */
  readonly refusedPercent: number;
  /** Since the latest opening of the tail, a minute at most. 0 before the first one. */
  readonly spanMs: number;
}

export const isRefused = ({ outcome }: TailLine): boolean => REFUSED.has(outcome);

export class LastMinuteCounts {
  /** By Unix second, in the order of arrival. */
  readonly #seconds = new Map<number, { callCount: number; refusedCount: number }>();
  #droppedCount = 0;
  #openedAtMs = Infinity;

  /** The tail is open from now on. Earlier calls are left out, since the calls of a break are not known. */
  open(nowMs: number): void {
    this.clear();
    this.#openedAtMs = nowMs;
  }

  /** Deliveries are no calls. Lines that were dropped count as calls that came when the line after them did. */
  add(row: TailLine | DroppedLines): void {
    if (row.kind === 'dropped') {
      this.#droppedCount += row.count ?? 0;
      return;
    }
    const droppedCount = this.#droppedCount;
    this.#droppedCount = 0;
    if (row.kind === 'reported') return;
    const second = Math.floor(row.at_ms / 1000);
    const counts = this.#seconds.get(second) ?? { callCount: 0, refusedCount: 0 };
    this.#seconds.set(second, counts);
    counts.callCount += 1 + droppedCount;
    if (isRefused(row)) counts.refusedCount++;
    for (const oldest of this.#seconds.keys()) {
      if (this.#seconds.size <= KEPT_SECONDS_MAX) break;
      this.#seconds.delete(oldest);
    }
  }

  clear(): void {
    this.#seconds.clear();
    this.#droppedCount = 0;
  }

  /** Of the present second and the 59 whole seconds before it. */
  at(nowMs: number): LastMinute {
    const after = Math.floor(nowMs / 1000) - MINUTE_SECONDS;
    let callCount = 0;
    let refusedCount = 0;
    for (const [second, counts] of this.#seconds) {
      if (second <= after) continue;
      callCount += counts.callCount;
      refusedCount += counts.refusedCount;
    }
    return {
      callCount,
      refusedPercent: callCount === 0 ? 0 : (100 * refusedCount) / callCount,
      spanMs: Math.max(0, Math.min(MINUTE_SECONDS * 1000, nowMs - this.#openedAtMs)),
    };
  }
}
