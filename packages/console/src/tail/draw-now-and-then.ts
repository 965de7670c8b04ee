/** Draws now and then, and leaves time for the reader. */

const INTERVAL_MS_MIN = 100;
const WAIT_MS_MAX = 2_000;
/**
 * A draw may take a fifth of the time. On a slow machine, on which 200 new rows take 70 ms, ten draws a second left a quarter
 * of a core, and a click was answered after 0.4 s.
 */
const SHARE_MAX = 1 / 5;

export interface DrawEffects {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** Runs it after the next frame. */
  readonly afterPaint: (run: () => void) => void;
  /** @returns cancels it. */
  readonly after: (delayMs: number, run: () => void) => () => void;
}

/**
 * Calls `draw` ten times a second, and less often if a draw takes more than 20 ms. Between two draws it waits for two
 * seconds at most.
 *
 * @param draw - returns whether it has drawn.
 * @returns ends it.
 */
export function drawNowAndThen(
  draw: () => boolean,
  { now, afterPaint, after }: DrawEffects,
): () => void {
  let isEnded = false;
  let cancel: () => void;
  const drawOnce = (): void => {
    const startedAtMs = now();
    if (!draw()) return wait(INTERVAL_MS_MIN);
    afterPaint(() => {
      const tookMs = now() - startedAtMs;
      const restMs = tookMs * (1 / SHARE_MAX - 1);
      wait(Math.max(INTERVAL_MS_MIN - tookMs, Math.min(WAIT_MS_MAX, restMs)));
    });
  };
  const wait = (delayMs: number): void => {
    if (!isEnded) cancel = after(delayMs, drawOnce);
  };
  cancel = after(INTERVAL_MS_MIN, drawOnce);
  return () => {
    isEnded = true;
    cancel();
  };
}
