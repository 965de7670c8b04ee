/**
 * Looks at what banks still have to pay for, in case the vendor's event was lost: without it the plan's allowance and
 * the receipt would never come. Run it every hour, on any number of workers.
 */
import { listRunsWithPaymentDue } from '@sluice/database/billing/runs';
import { eachAsked } from '../process/each-alone.ts';
import { lookAtInvoice, type SettleVendorEventsDeps } from '../settlement/settle-vendor-events.ts';

/** The rest waits for the next time; a bank pays within days. */
const RUNS_MAX = 1_000;

/** @param isStopping - asked before each: the rest waits for the next time. */
export async function lookAtDuePayments(
  deps: SettleVendorEventsDeps,
  isStopping: () => boolean = () => false,
): Promise<void> {
  const runs = await listRunsWithPaymentDue(deps.database, deps.now(), RUNS_MAX);
  await eachAsked(
    deps.logger,
    'look at due payment',
    runs,
    ({ invoiceId }) => lookAtInvoice(deps, invoiceId),
    isStopping,
  );
}
