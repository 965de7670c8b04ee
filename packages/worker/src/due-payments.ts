/**
 * Looks at what banks still have to pay for, in case the vendor's event was lost: without it the plan's allowance and
 * the receipt would never come. Run it every hour, on any number of workers.
 */
import { listRunsWithPaymentDue } from '@sluice/database/runs';
import { eachAlone } from './each-alone.ts';
import { lookAtInvoice, type SettleVendorEventsDeps } from './settle-vendor-events.ts';

/** The rest waits for the next time; a bank pays within days. */
const RUNS_MAX = 1_000;

export async function lookAtDuePayments(deps: SettleVendorEventsDeps): Promise<void> {
  const runs = await listRunsWithPaymentDue(deps.database, RUNS_MAX);
  await eachAlone(deps.logger, 'look at due payment', runs, ({ invoiceId }) =>
    lookAtInvoice(deps, invoiceId),
  );
}
