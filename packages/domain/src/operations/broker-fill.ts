/**
 * Fill limit of a broker for new commit batches. A worker needs memory there to take a job, so a completely full Redis
 * stands still. Intake stops before that, and the rest is for the workers.
 *
 * ```
 *   open ── fill ≥ the mark ──▶ full ── 5 points below it, or below it after 10 s ──▶ open
 * ```
 *
 * Two marks, so that it neither opens nor shuts with each commit batch. The lower one not for long: what else is in
 * there may hold it between the two for ever. What one of several masters has no capacity for cannot
 * go to another: a queue is where it is, and the next flush may touch every one of them. So the fullest decides.
 *
 * Before: `platform/src/redis/redis-capacity.ts`, which reads the figures and does what this says.
 */

/** Of one master, as it compares them itself. */
export interface MemoryUse {
  readonly usedBytes: number;
  /** 0: it has none. */
  readonly limitBytes: number;
}

/** The mark where nobody sets another, percent of the limit. */
export const FILL_PERCENT_MAX = 90;
/** How far below the mark it goes on. */
const OPEN_AGAIN_PERCENT_LESS = 5;
/** After so long the mark alone counts. */
const LOWER_MARK_MS = 10_000;
/** One who adds looks again after so small a part of what is kept free. Sixteen of them overshoot by a quarter of it. */
const LOOKS_IN_FREE_PART = 64;

/** Of the fullest master: 1 is its limit, above which it refuses. 0 if none has a limit. */
export function fillOf(uses: readonly MemoryUse[]): number {
  return uses.reduce(
    (fill, { usedBytes, limitBytes }) =>
      limitBytes > 0 ? Math.max(fill, usedBytes / limitBytes) : fill,
    0,
  );
}

/** Whether nothing more may be added at this fill. @param fullForMs - since it was first said so; undefined: it was not. */
export function isFull(fullForMs: number | undefined, fill: number, percentMax: number): boolean {
  const isLower = fullForMs !== undefined && fullForMs < LOWER_MARK_MS;
  return 100 * fill >= percentMax - (isLower ? OPEN_AGAIN_PERCENT_LESS : 0);
}

/**
 * How much one may add before looking again, bytes: of the smallest master, since all of it may go there. Infinity
 * where none has a limit.
 */
export function addedBytesMax(uses: readonly MemoryUse[], percentMax: number): number {
  const limits = uses.map(({ limitBytes }) => limitBytes).filter((limit) => limit > 0);
  return (Math.min(...limits) * (1 - percentMax / 100)) / LOOKS_IN_FREE_PART;
}
