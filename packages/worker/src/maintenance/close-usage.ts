/**
 * Sums up the days of usage that are over, of every account (`database/src/credits/usage-watermarks.ts`). A day
 * is over some time after its end, so that its runs can be looked at one by one for a while.
 *
 * May be cut short, run again and run by several workers at once: each step is one transaction that
 * leaves accounts further than it found them, or as they were. Beside `usage-tasks.ts`, which has it done.
 */
import type { Database } from '@sluice/database/connection/connection';
import { closeUsageDays } from '@sluice/database/credits/usage-watermarks';
import { addDays, utcDayOf } from '@sluice/domain/values/utc-day';

export interface CloseUsageDeps {
  readonly database: Database;
  readonly now: () => number;
  /** Between the end of a day and its closing. */
  readonly dayClosedAfterMs: number;
  readonly isStopping: () => boolean;
}

/** Of one transaction: they cannot record meanwhile. */
const ACCOUNTS_MAX = 200;

export async function closeUsage(deps: CloseUsageDeps): Promise<void> {
  const through = addDays(utcDayOf(deps.now() - deps.dayClosedAfterMs), -1);
  while (!deps.isStopping() && (await closeUsageDays(deps.database, through, ACCOUNTS_MAX)) > 0);
}
