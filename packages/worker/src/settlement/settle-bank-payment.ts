/**
 * Settles a plan or add-ons after a bank has paid for them.
 *
 * Their purchase has succeeded days before, when the payment provider put them on the subscription; the receipt and the
 * plan's allowance come with the money. If the bank does not pay, the subscription becomes past due, like one with an
 * unpaid renewal (`settle-subscription.ts`).
 *
 * Before: `end-purchase-workflow.ts`, `settle-provider-events.ts`.
 */
import type { ProviderInvoice } from '@sluice/billing-vendor/port/payment-provider';
import { settleUnpaidPlan } from '@sluice/database/billing/account-plans';
import type { Transaction } from '@sluice/database/connection/connection';
import { insertReceipt } from '@sluice/database/billing/receipts';
import {
  updatePurchaseResult,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { followPlan } from './end-purchase-workflow.ts';
import { receiptOf } from './record-ending.ts';

/**
 * Call with the purchase workflow locked by the transaction. Once it is paid, further calls have no effect.
 *
 * @param workflow - as the lock found it.
 */
export async function settleBankPayment(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  invoice: ProviderInvoice,
  nowMs: number,
): Promise<void> {
  // A pending purchase has no result yet, and only a successful one waits for a bank.
  const { due, givenUp, ...result } = workflow.result ?? { charged: null, invoiceId: null };
  const awaited = due ?? givenUp;
  if (!awaited || result.invoiceId !== invoice.invoiceId) return;
  if (invoice.status === 'uncollectible') {
    await updatePurchaseResult(transaction, workflow, { ...result, givenUp: awaited });
    return;
  }
  // Voided by hand: then the wait ends without a charge.
  if (invoice.status !== 'paid' && invoice.status !== 'void') return;
  const charged = invoice.status === 'paid' ? invoice.total : null;
  const settled = { ...result, charged };
  const { content } = workflow;
  // Before the purchase workflow is written: the order of locks.
  const isPlanInForce =
    content.type === 'checkout' &&
    (await settleUnpaidPlan(transaction, workflow.accountId, workflow.runId));
  const receipt = await receiptOf(
    transaction,
    workflow,
    { status: 'success', result: settled },
    nowMs,
  );
  await updatePurchaseResult(transaction, workflow, {
    ...settled,
    ...(receipt && { receiptId: receipt.receiptId }),
  });
  if (receipt) await insertReceipt(transaction, workflow.accountId, receipt);
  if (!isPlanInForce) return;
  // It has a price, or it would not have waited for a payment.
  await followPlan(transaction, workflow, content.plan, true, nowMs);
}
