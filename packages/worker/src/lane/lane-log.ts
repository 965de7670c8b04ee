/**
 * A drain's place in its lane's log.
 *
 * It reads the log page by page. It knows the end of the log, and the first day with something to read, so that the
 * partitions of the days before are not read. It decides how much is loaded at a time, and with how many requests a
 * drain begins.
 *
 * Between `lane-drain.ts` and `lane-store.ts`.
 */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { ClaimedLane } from '@sluice/database/delivery/lanes';
import type { LaneDelivery, LaneRun } from '@sluice/domain/delivery/lane';
import { AppError } from '@sluice/domain/values/errors';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { LaneStore } from './lane-store.ts';

/** As much as goes out in a few round trips, so that many lanes fit into memory: 1,000 hold some 48 MB of 1 KB bodies. */
const PAGE_SIZE_MIN = 32;
const PAGE_SIZE_MAX = 512;
const PAGE_CONCURRENCY_LIMITS = 4;
const FIRST_CONCURRENCY_LIMIT_MIN = 8;
/**
 * No more is loaded while so many stand in the lines of people: 10 people who take turns keep 10 requests in flight, 100
 * nearly 64, and a backlog about one person takes little memory.
 */
const IN_LINE_MAX = 64;

/** Deliveries to load at a time. */
function pageSize(concurrencyLimit: number): number {
  return Math.min(
    Math.max(concurrencyLimit * PAGE_CONCURRENCY_LIMITS, PAGE_SIZE_MIN),
    PAGE_SIZE_MAX,
  );
}

/** True if so few are left to start that the next page is due. */
export function wantsPage(
  run: Pick<LaneRun<LaneDelivery>, 'ahead' | 'inLineCount' | 'concurrencyLimit'>,
): boolean {
  return run.ahead < pageSize(run.concurrencyLimit) / 2 && run.inLineCount < IN_LINE_MAX;
}

/** How much to load next: of a failing lane its head only, which may come after others that were never tried. */
export function nextPageSize(
  run: Pick<LaneRun<LaneDelivery>, 'nextProbeAtMs' | 'span' | 'inLineCount' | 'concurrencyLimit'>,
): number {
  if (run.nextProbeAtMs !== null) return run.span === 0 ? 1 : PAGE_SIZE_MAX;
  return run.inLineCount < PAGE_SIZE_MIN ? pageSize(run.concurrencyLimit) : PAGE_SIZE_MIN;
}

/**
 * How many requests of one lane may be in flight in a busy process: some, while it drains few lanes. With one request at a time a
 * lane waits for each answer. With many lanes a further connection of each costs as much as it saves.
 *
 * @param laneCount - lanes that this process drains.
 */
export const busyConcurrencyLimit = (laneCount: number): number =>
  Math.max(1, Math.floor(FIRST_CONCURRENCY_LIMIT_MIN / Math.max(laneCount, 1)));

/**
 * A small backlog needs no more connections than it can use again; the concurrency limit grows with each success. In a
 * busy process it begins with fewer.
 *
 * @param laneCount - lanes that this process drains.
 */
export function firstConcurrencyLimit(
  claimed: ClaimedLane,
  isBusy: boolean,
  laneCount: number,
): number {
  const backlog = claimed.lastSequence - claimed.cursor;
  return Math.min(
    claimed.concurrencyLimit,
    isBusy
      ? busyConcurrencyLimit(laneCount)
      : Math.max(FIRST_CONCURRENCY_LIMIT_MIN, Math.ceil(backlog / 8)),
  );
}

export class LaneLog {
  readonly #store: Pick<LaneStore, 'load'>;
  readonly #lane: LaneKey;
  /** Attempts of earlier runs are between the cursor and here. */
  readonly #attemptedThrough: number;
  readonly #isAtEnd: (() => boolean) | undefined;
  #readFromDay: string | null;
  #cursorFromDay: string | null;
  /** As Postgres last returned it. */
  #lastSequence: number;
  /** As later loggers have reported it. */
  #loggedThrough = 0;

  /** @param isAtEnd - for a log whose end is not known before it is read. */
  constructor(
    store: Pick<LaneStore, 'load'>,
    lane: LaneKey,
    claimed: Pick<ClaimedLane, 'attemptedThrough' | 'readFromDay' | 'lastSequence'>,
    isAtEnd?: () => boolean,
  ) {
    this.#store = store;
    this.#lane = lane;
    this.#isAtEnd = isAtEnd;
    this.#attemptedThrough = claimed.attemptedThrough;
    this.#readFromDay = claimed.readFromDay;
    this.#cursorFromDay = claimed.readFromDay;
    this.#lastSequence = claimed.lastSequence;
  }

  /** The sequence of its last delivery, as far as is known. */
  get end(): number {
    return Math.max(this.#lastSequence, this.#loggedThrough);
  }

  /** Sets its end as Postgres returned it. */
  adoptEnd(lastSequence: number): void {
    this.#lastSequence = lastSequence;
  }

  /** A logger has written up to there; Postgres may return less for a moment. */
  noteLogged(lastSequence: number): void {
    this.#loggedThrough = Math.max(this.#loggedThrough, lastSequence);
  }

  /** The day of the first delivery beyond the cursor, or an earlier one; null if it is not known. */
  get cursorFromDay(): string | null {
    return this.#cursorFromDay;
  }

  /**
   * The next deliveries after `after`, at most `limit` and at least one, but in a log whose end is not known.
   *
   * @throws AppError BUG if there is no such delivery, although the lane's row counts one.
   */
  async read(after: number, limit: number, cursor: number): Promise<LoggedDelivery[]> {
    const page = await this.#store.load({
      lane: this.#lane,
      after,
      attemptedThrough: this.#attemptedThrough,
      limit,
      readFromDay: this.#readFromDay,
    });
    if (this.#isAtEnd?.()) this.#lastSequence = page.at(-1)?.sequence ?? after;
    const [first] = page;
    if (!first && this.#isAtEnd) return [];
    if (!first)
      throw new AppError(
        'BUG',
        `the log of a delivery queue ends at ${after}, before its last sequence`,
      );
    this.noteRead(page, after === cursor);
    return page;
  }

  /** The next deliveries are known. @param isAtCursor - the first of them is the one after the cursor. */
  noteRead(page: readonly LoggedDelivery[], isAtCursor: boolean): void {
    if (isAtCursor) this.#cursorFromDay = page[0]?.readFromDay ?? null;
    this.#readFromDay = page.at(-1)?.readFromDay ?? null;
  }
}
