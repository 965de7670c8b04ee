/**
 * How many operations of workspaces that send much may wait for the workers at a time, while other workspaces send too:
 * the window of one intake. As that of a congested connection it follows what it measures, the time from when operations
 * were added to the queues until they were applied: whatever a call of another workspace waits behind is that long. Pure.
 */

export const ADMISSION_WINDOW_MIN = 100;
export const ADMISSION_WINDOW_MAX = 20_000;
/** A transaction costs a worker some milliseconds whatever it holds; from here on it is used well. */
export const ADMISSION_WINDOW_START = 500;
/**
 * Times of what a few operations take where nobody sends much. With 20 ms, the usual (`npm run bench -- neighbour`), a call
 * beside others that fill the window waits 35 to 50 ms: below five times of before, also at the 99th percentile.
 */
const SHRINKS_FROM = 2.5;
const GROWS_BELOW = 1.75;
const GROWTH = 1.25;
const DECAY = 0.75;

/** What a few operations take where nobody sends much, in milliseconds, until it is measured. */
export const USUAL_APPLIED_AFTER_MS = 20;
/** Whatever was measured: workers that are at other work, or a broker that hung, are not the usual. */
const USUAL_MS_MIN = 15;
const USUAL_MS_MAX = 100;
/** Of the one measured last. */
const WEIGHT = 0.2;

/** The usual time, after one more has been measured. */
export const nextUsualMs = (usualMs: number, appliedAfterMs: number): number =>
  Math.min(USUAL_MS_MAX, Math.max(USUAL_MS_MIN, usualMs + (appliedAfterMs - usualMs) * WEIGHT));

/**
 * The next window.
 *
 * @param appliedAfterMs - from when operations were added until they were seen applied.
 * @param usualMs - the same of a few operations, where nobody sends much.
 * @param isLimiting - operations waited for the window when those were added. Otherwise a window says nothing.
 */
export function nextAdmissionWindow(
  window: number,
  appliedAfterMs: number,
  usualMs: number,
  isLimiting: boolean,
): number {
  if (appliedAfterMs >= SHRINKS_FROM * usualMs)
    return Math.max(ADMISSION_WINDOW_MIN, window * DECAY);
  if (appliedAfterMs >= GROWS_BELOW * usualMs || !isLimiting) return window;
  return Math.min(ADMISSION_WINDOW_MAX, window * GROWTH);
}
