/**
 * Inputs of the user since the last request. A request without an input before it is made by the page itself.
 */

/** Clicks come without a pointer from a screen reader or from speech. */
const INPUTS = ['pointerdown', 'keydown', 'click', 'wheel', 'input'] as const;

/** A session ends after hours without use. */
const REPORT_INTERVAL_MS = 600_000;

/** The opening of the page is an input. */
let hasInput = true;

export function watchUserInput(target: EventTarget): void {
  for (const type of INPUTS)
    target.addEventListener(type, () => (hasInput = true), { capture: true, passive: true });
}

/** Called once for each request; the next one needs another input. */
export function isUnattended(): boolean {
  const was = !hasInput;
  hasInput = false;
  return was;
}

/**
 * Reports inputs that no request has reported, as on a screen that only listens: the session is in use.
 *
 * @param report - makes a request.
 * @returns stops it.
 */
export function reportUnsentInput(report: () => void): () => void {
  const timer = setInterval(() => {
    if (hasInput) report();
  }, REPORT_INTERVAL_MS);
  return () => clearInterval(timer);
}
