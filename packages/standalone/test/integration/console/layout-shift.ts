/** Layout shifts of an open page. */
import type { Page } from 'playwright-core';

/** Content that moves later is an update, and no part of the opening. */
const WATCHED_MS = 1_000;
/** A machine that stands still for seconds does not reach a deadline of the page. */
const SLOWER = 60;

/** Moved elements, such as `SECTION. Credits`, with the score of their shift. */
export interface Shifts {
  readonly sum: number;
  readonly moved: readonly string[];
}

/** Makes the timers of later pages slower, so that the same parts are drawn on a slow machine. */
export async function slowTimers(page: Page): Promise<void> {
  await page.addInitScript((slower) => {
    const begin = window.setTimeout.bind(window);
    window.setTimeout = ((run: () => void, ms = 0) =>
      begin(run, ms * slower)) as typeof window.setTimeout;
  }, SLOWER);
}

/**
 * The shifts from the opening of the page to a second from now.
 *
 * @param options.isFromNow - without the shifts before the call.
 * @param options.act - runs while the page is watched; the second begins after it.
 */
export async function shiftsOf(
  page: Page,
  {
    isFromNow = false,
    act,
  }: { readonly isFromNow?: boolean; readonly act?: () => Promise<void> } = {},
): Promise<Shifts> {
  const watched = await page.evaluateHandle((buffered) => {
    const entries: PerformanceEntryList = [];
    const observer = new PerformanceObserver((list) => void entries.push(...list.getEntries()));
    observer.observe({ type: 'layout-shift', buffered });
    return { entries, observer };
  }, !isFromNow);
  await act?.();
  return watched.evaluate(
    ({ entries, observer }, watchedMs) =>
      new Promise<{ sum: number; moved: string[] }>((resolve) => {
        // Neither of the slower timers, nor a frame after another, which would draw the page sixty times.
        const isOver = AbortSignal.timeout(watchedMs);
        const look = (): void => {
          const shifts = [...entries, ...observer.takeRecords()] as (PerformanceEntry & {
            readonly value: number;
            readonly sources: readonly { readonly node: Node | null }[];
          })[];
          resolve({
            sum: shifts.reduce((sum, { value }) => sum + value, 0),
            moved: shifts.flatMap(({ value, sources }) =>
              sources.map(
                ({ node }) =>
                  `${value.toFixed(4)} ${node?.nodeName} ${node?.textContent?.slice(0, 60)}`,
              ),
            ),
          });
        };
        isOver.addEventListener('abort', () => requestAnimationFrame(look));
      }),
    WATCHED_MS,
  );
}
