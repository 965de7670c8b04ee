/**
 * Maximum operations of busy workspaces that wait for workers: one intake's window.
 *
 * It applies while other workspaces send too. Like the window of a congested connection it follows a measurement: the
 * time between the adding of operations to the queues and their application. A call of another workspace waits as long.
 * Pure.
 */

export const ADMISSION_WINDOW_MIN = 100;
export const ADMISSION_WINDOW_MAX = 20_000;
/** A transaction costs a worker some milliseconds for any number of operations; from this number on it is used well. */
export const ADMISSION_WINDOW_START = 500;
/**
 * Multiples of the time that a few operations take while no workspace sends much. With the usual 20 ms (`npm run bench
 * -- neighbour`), a call beside others that fill the window waits 35 to 50 ms: below five times of before, also at the
 * 99th percentile.
 */
const SHRINKS_FROM = 2.5;
const GROWS_BELOW = 1.75;
const GROWTH = 1.25;
const DECAY = 0.75;

/** Time that a few operations take while no workspace sends much, in milliseconds, until it is measured. */
export const USUAL_APPLIED_AFTER_MS = 20;
/** Bounds for any measurement: workers that are busy with other work, or a broker that hung, are not the usual. */
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
 * @param usualMs - the same of a few operations, while no workspace sends much.
 * @param isLimiting - operations waited for the window when the measured ones were added. Otherwise the measurement has
 * no
 *   meaning for the window.
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
