/**
 * Processes the payment provider's webhook events.
 *
 * An event only names an object. The invoice is fetched as it is now, and `settle-invoice.ts` settles it like every
 * other path. A subscription goes to `settle-subscription.ts`, money that went back to `settle-reversal.ts`. So events
 * may come twice, late and in any order.
 *
 * Before: `api/src/billing/provider-event-endpoint.ts`. After: `settle-invoice.ts`.
 */
import { eventSubject } from '@sluice/billing-vendor/port/event-subject';
import type { PaymentProvider, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import type { Database } from '@sluice/database/connection/connection';
import { lockPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import {
  claimProviderEvents,
  settleProviderEvent,
  type ProviderEvent,
} from '@sluice/database/billing/provider-events';
import { findAccountOfCustomer } from '@sluice/database/billing/provider-customers';
import type { Logger } from '@sluice/platform/process/logger';
import { eachAlone } from '../process/each-alone.ts';
import { settleBankPayment } from './settle-bank-payment.ts';
import { settleInvoice } from './settle-invoice.ts';
import { settleReversal } from './settle-reversal.ts';
import { settleSubscription } from './settle-subscription.ts';

export interface SettleProviderEventsDeps {
  readonly database: Database;
  readonly provider: PaymentProvider;
  readonly now: () => number;
  readonly logger: Logger;
}

const BATCH_SIZE = 50;
/** How long an event waits that cannot be applied now; twice as long each time. */
const RETRY = { firstMs: 5_000, mostMs: 300_000 };

/** Run it on any number of workers. @returns how many were applied. */
export async function settleProviderEvents(deps: SettleProviderEventsDeps): Promise<number> {
  let count = 0;
  for (;;) {
    const events = await claimProviderEvents(deps.database, deps.now(), RETRY, BATCH_SIZE);
    await eachAlone(deps.logger, 'settle vendor event', events, async (event) => {
      if (!(await settle(deps, event))) return;
      await settleProviderEvent(deps.database, event.eventId, deps.now());
      count += 1;
    });
    if (events.length < BATCH_SIZE) return count;
  }
}

/** @returns false if it has to be looked at again. */
async function settle(deps: SettleProviderEventsDeps, event: ProviderEvent): Promise<boolean> {
  const subject = eventSubject(event.type);
  switch (subject) {
    case 'subscription':
      return settleSubscription(deps, event.objectId);
    case 'invoice':
      return (await lookAtInvoice(deps, event.objectId)) !== 'unknown';
    case 'charge':
    case 'refund':
    case 'dispute':
      return settleReversal(deps, subject, event.objectId);
    // One that another version has kept.
    case undefined:
      return true;
  }
}

/** @returns the payment provider's answer; after `unknown` it has to be looked at again. */
export async function lookAtInvoice(
  deps: SettleProviderEventsDeps,
  invoiceId: string,
): Promise<ProviderResult<unknown>['outcome']> {
  const found = await deps.provider.findInvoice(invoiceId);
  if (found.outcome !== 'ok') return found.outcome;
  const invoice = found.value;
  const { runId } = invoice;
  if (runId === null) return 'ok';
  // A subscription's invoice names the purchase that changed it, and no account.
  const accountId =
    invoice.accountId ?? (await findAccountOfCustomer(deps.database, invoice.customerId));
  // Not an invoice that a purchase of ours made.
  if (accountId === undefined) return 'ok';
  const isParked = await deps.database.transaction().execute(async (transaction) => {
    const workflow = await lockPurchaseWorkflow(transaction, { accountId, runId });
    if (workflow?.content.type === 'purchase')
      return (await settleInvoice(transaction, workflow, invoice, deps.now())) === 'parked';
    if (workflow) await settleBankPayment(transaction, workflow, invoice, deps.now());
    return false;
  });
  if (isParked)
    deps.logger.error(
      { runId, invoiceId },
      'a purchase needs manual review: sluice purchases list',
    );
  return 'ok';
}
