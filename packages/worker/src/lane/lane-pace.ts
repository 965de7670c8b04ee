/** How much of a lane's log is loaded at a time, and with how many requests a drain begins. */
import type { ClaimedLane } from '@sluice/database/delivery/lanes';

/** As much as goes out in a few round trips, so that many lanes fit into memory: 1,000 hold some 48 MB of 1 KB bodies. */
const PAGE_SIZE_MIN = 32;
const PAGE_SIZE_MAX = 512;
const PAGE_WINDOWS = 4;
const FIRST_WINDOW_MIN = 8;

/** Deliveries to load at a time. */
export function pageSize(window: number): number {
  return Math.min(Math.max(window * PAGE_WINDOWS, PAGE_SIZE_MIN), PAGE_SIZE_MAX);
}

/**
 * A small backlog needs no more connections than it can use again; the window grows with each success. In a busy
 * process it begins with one: there a further connection costs as much as it saves.
 */
export function firstWindow(claimed: ClaimedLane, isBusy: boolean): number {
  if (isBusy) return 1;
  const backlog = claimed.lastSequence - claimed.cursor;
  return Math.min(claimed.window, Math.max(FIRST_WINDOW_MIN, Math.ceil(backlog / 8)));
}
