/**
 * Fill limit of a broker for new commit batches. A worker needs memory there to take a job, so a completely full Redis
 * stands still. Intake stops before that, and leaves the rest to the workers.
 *
 * ```
 *   open ── fill ≥ the mark ──▶ full ── 5 points below it, or below it after 10 s ──▶ open
 * ```
 *
 * Two marks keep it from opening and closing with each commit batch. The lower mark ends after 10 s: other data in
 * Redis may hold the fill between the two for ever. A batch cannot move to another of several masters: its queue has
 * one master, and the next flush may touch every one of them. So the fullest decides.
 *
 * Before: `platform/src/redis/redis-capacity.ts`, which reads the figures and applies the result.
 */

/** Of one master, as it compares them itself. */
export interface MemoryUse {
  readonly usedBytes: number;
  /** 0 if it has no limit. */
  readonly limitBytes: number;
}

/** Default of the mark, percent of the limit. */
export const FILL_PERCENT_MAX = 90;
/** How far below the mark it goes on. */
const OPEN_AGAIN_PERCENT_LESS = 5;
/** After so long the mark alone counts. */
const LOWER_MARK_MS = 10_000;
/**
 * A process that adds batches reads the fill again after so small a part of the free space. Sixteen of them overshoot
 * by a quarter of it.
 */
const LOOKS_IN_FREE_PART = 64;

/** Of the fullest master: 1 is its limit, above which it refuses. 0 if no master has a limit. */
export function fillOf(uses: readonly MemoryUse[]): number {
  return uses.reduce(
    (fill, { usedBytes, limitBytes }) =>
      limitBytes > 0 ? Math.max(fill, usedBytes / limitBytes) : fill,
    0,
  );
}

/**
 * True if no more batches may be added at this fill.
 *
 * @param fullForMs - time since this first returned true; undefined if it returned false.
 */
export function isFull(fullForMs: number | undefined, fill: number, percentMax: number): boolean {
  const isLower = fullForMs !== undefined && fullForMs < LOWER_MARK_MS;
  return 100 * fill >= percentMax - (isLower ? OPEN_AGAIN_PERCENT_LESS : 0);
}

/**
 * Bytes that one process may add before it reads the fill again. It counts the smallest master, since all of it may go
 * there. Infinity if no master has a limit.
 */
export function addedBytesMax(uses: readonly MemoryUse[], percentMax: number): number {
  const limits = uses.map(({ limitBytes }) => limitBytes).filter((limit) => limit > 0);
  return (Math.min(...limits) * (1 - percentMax / 100)) / LOOKS_IN_FREE_PART;
}
