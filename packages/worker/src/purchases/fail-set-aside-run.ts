/**
 * Ends a purchase that was set aside and cannot go on: what the vendor took is not the price, or a step is never done.
 * For a person who has put things right at the vendor, because nothing is asked of it here: an invoice is void there
 * or refunded. One that is paid later sets the purchase aside again (`settle-invoice.ts`).
 *
 * Used by `sluice purchases` (`scripts/purchases.ts`).
 */
import type { Database } from '@sluice/database/connection/connection';
import { lockRun } from '@sluice/database/billing/runs';
import { lockSetAsideRun, type SetAsideRun } from '@sluice/database/billing/set-aside-runs';
import { FAILURE_MESSAGES } from '@sluice/domain/billing/decline-message';
import { recordEnding } from '../settlement/record-ending.ts';

/** @returns the run as it was set aside; undefined where none is, or it has ended before. */
export async function failSetAsideRun(
  database: Database,
  runId: string,
  nowMs: number,
): Promise<SetAsideRun | undefined> {
  return database.transaction().execute(async (transaction) => {
    const setAside = await lockSetAsideRun(transaction, runId);
    const run = setAside && (await lockRun(transaction, setAside));
    if (run?.status !== 'pending') return undefined;
    const result = { charged: null, invoiceId: run.invoiceId };
    const ending = { status: 'failed', message: FAILURE_MESSAGES.setAside, result } as const;
    await recordEnding(transaction, run, ending, nowMs);
    return setAside;
  });
}
