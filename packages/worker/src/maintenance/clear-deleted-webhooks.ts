/**
 * Clears the log of deleted webhooks away, in steps small enough to disturb nobody. A deleted
 * webhook is gone for its owner at once; what it leaves behind may be millions of rows.
 */
import type { Database } from '@sluice/database/connection/connection';
import { clearDeletedWebhook } from '@sluice/database/webhooks/webhooks';

const ROWS_PER_STEP = 1_000;

/**
 * Runs until nothing is left, or until `stepsMax` steps are made. May run on any number of workers.
 *
 * @returns the steps made.
 */
export async function clearDeletedWebhooks(database: Database, stepsMax: number): Promise<number> {
  for (let steps = 0; steps < stepsMax; steps++) {
    const hasMore = await clearDeletedWebhook(database, ROWS_PER_STEP);
    if (!hasMore) return steps;
  }
  return stepsMax;
}
