/**
 * Durations of attempts, as counts by class: sums of minutes, processes and webhooks stay exact, and a percentile is
 * within its class. Pure.
 */

/**
 * Upper bounds of the classes in milliseconds, each twice the one before. Values above the last bound have a class of
 * their own.
 */
export const LATENCY_BOUNDS_MS: readonly number[] = Array.from({ length: 14 }, (_, n) => 2 ** n);

export const LATENCY_CLASS_COUNT = LATENCY_BOUNDS_MS.length + 1;

/** The place of a duration among the classes. */
export function latencyClassOf(durationMs: number): number {
  const found = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  return found === -1 ? LATENCY_BOUNDS_MS.length : found;
}

/**
 * @param counts - by class.
 * @param share - from 0 to 1.
 * @returns milliseconds, on the line between the bounds of the class; undefined if all counts are 0.
 */
export function latencyPercentileMs(counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const wanted = share * total;
  let below = 0;
  for (const [place, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = LATENCY_BOUNDS_MS[place - 1] ?? 0;
      // The last class has no upper bound, so its lower bound is the result.
      const to = LATENCY_BOUNDS_MS[place] ?? from;
      return from + (to - from) * Math.max(0, (wanted - below) / count);
    }
    below += count;
  }
  return LATENCY_BOUNDS_MS.at(-1);
}
