/**
 * The accounting of `fair-permits.ts`: the permit time of each account and of each of its webhooks, and their waiting
 * requests. Tags and presents are amounts of permit time, not times of day.
 */
import { MinHeap } from './min-heap.ts';

/**
 * How long a first request is expected to hold its permit; later ones as long as the last one did. The true time is
 * charged when it ends.
 */
const FIRST_EXPECTED_MS = 5;
/** No share is charged further ahead of the present than this, which bounds every wait. */
const AHEAD_MS_MAX = 2_000;

interface Share {
  /** Permit time, by which the next one is chosen. */
  tagMs: number;
  /** Permits held, slow ones too, and waits. Without any, the tag is not needed once the present has overtaken it. */
  uses: number;
}

interface LaneShare extends Share {
  expectedMs: number;
}

export interface AccountShare extends Share {
  readonly accountId: number;
  /** Of the webhook chosen last. */
  presentMs: number;
  readonly lanes: Map<string, LaneShare>;
  readonly waiting: MinHeap<Waiter>;
  isQueued: boolean;
  /** Its place among the accounts that wait. */
  waitsFromMs: number;
}

export interface Waiter {
  readonly lane: string;
  readonly onFree: () => void;
  /** Its place in the line of its account. */
  waitsFromMs: number;
  isCancelled: boolean;
}

/** Of an account without permit time. */
export function accountShare(accountId: number): AccountShare {
  return {
    accountId,
    tagMs: 0,
    uses: 0,
    presentMs: 0,
    lanes: new Map(),
    waiting: new MinHeap(),
    isQueued: false,
    waitsFromMs: 0,
  };
}

/** The share of one webhook, made if it is missing. */
export function laneOf(account: AccountShare, name: string): LaneShare {
  let lane = account.lanes.get(name);
  if (!lane) {
    lane = { tagMs: 0, uses: 0, expectedMs: FIRST_EXPECTED_MS };
    account.lanes.set(name, lane);
  }
  return lane;
}

/** Charges a use to a share and returns its start, which is the present now. */
export function charge(share: Share, presentMs: number, expectedMs: number): number {
  const startMs = Math.max(share.tagMs, presentMs);
  share.tagMs = startMs + expectedMs;
  return startMs;
}

/** Charges the time of a use beyond the expected one, or gives back the unused part. */
export function settle(share: Share, presentMs: number, unexpectedMs: number): void {
  share.tagMs = Math.min(share.tagMs + unexpectedMs, presentMs + AHEAD_MS_MAX);
}
