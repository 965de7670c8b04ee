/**
 * The one way in which an invoice's fate reaches a purchase workflow.
 *
 * The worker that paid it, the payment provider's events and the reconciler call it, at the same time and as often as
 * they like. A paid invoice grants once (the grant's key is the invoice), and an ending is for ever. An invoice that
 * contradicts an ending puts the purchase in manual review instead of being applied.
 */
import type { Transaction } from '@sluice/database/connection/connection';
import { grantCredits } from '@sluice/database/credits/credits';
import {
  sendPurchaseToReview,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { InvoiceStatus } from '@sluice/billing-vendor/port/payment-provider';
import { FAILURE_MESSAGES } from '@sluice/domain/billing/decline-message';
import { isSameMoney, type Money } from '@sluice/domain/values/money';
import { purchaseOf } from './purchase-step.ts';
import { recordEnding } from './record-ending.ts';

const DAY_MS = 86_400_000;

export interface InvoiceFate {
  readonly invoiceId: string;
  readonly status: InvoiceStatus;
  readonly total: Money;
  /**
   * In minor units: the part of it that the customer's credit does not pay. Absent if an earlier version did not keep
   * it.
   */
  readonly amountDue?: number;
}

/** Effect on the purchase workflow. */
export type Settlement = 'succeeded' | 'failed' | 'unchanged' | 'parked';

/** Call with the purchase workflow locked by the transaction. @param workflow - as the lock found it. */
export async function settleInvoice(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  invoice: InvoiceFate,
  nowMs: number,
): Promise<Settlement> {
  const purchase = purchaseOf(workflow);
  const sendToReview = async (reason: string): Promise<Settlement> => {
    await sendPurchaseToReview(transaction, workflow, `${reason}: invoice ${invoice.invoiceId}`);
    return 'parked';
  };
  // A copy that somebody made of its invoice at the payment provider names the purchase workflow too.
  if (workflow.invoiceId !== null && workflow.invoiceId !== invoice.invoiceId)
    return invoice.status === 'paid'
      ? sendToReview(`paid beside ${workflow.invoiceId}`)
      : 'unchanged';
  if (invoice.status === 'paid') {
    if (workflow.status === 'success') return 'unchanged';
    if (workflow.status !== 'pending')
      return sendToReview(`paid after the run ended as ${workflow.status}`);
    // The worker writes its invoice down before anybody can pay it.
    if (workflow.invoiceId === null) return sendToReview('paid before the run had an invoice');
    const { total } = invoice;
    if (!isSameMoney(total, purchase.price))
      return sendToReview(
        `paid ${total.amount} ${total.currency}, not ${purchase.price.amount} ${purchase.price.currency}`,
      );
    await grantCredits(
      transaction,
      { accountId: workflow.accountId, kind: purchase.kind },
      {
        pool: 'purchased',
        amount: purchase.quantity,
        expiresAtMs:
          purchase.expiresAfterDays === null ? null : nowMs + purchase.expiresAfterDays * DAY_MS,
        key: `grant:invoice:${invoice.invoiceId}`,
      },
      nowMs,
    );
    const result = {
      charged: invoice.total,
      invoiceId: invoice.invoiceId,
      ...(invoice.amountDue === 0 && { isPaidByCredit: true as const }),
    };
    await recordEnding(transaction, workflow, { status: 'success', message: null, result }, nowMs);
    return 'succeeded';
  }
  const isGone = invoice.status === 'void' || invoice.status === 'deleted';
  if (!isGone) return 'unchanged';
  if (workflow.status === 'success') return sendToReview('void after it was paid and granted');
  // By invoice the purchase workflow itself voids, and then ends by its earlier result.
  if (workflow.status !== 'pending' || workflow.rail !== 'card') return 'unchanged';
  const result = { charged: null, invoiceId: invoice.invoiceId };
  const end = { status: 'failed', message: FAILURE_MESSAGES.expired, result } as const;
  await recordEnding(transaction, workflow, end, nowMs);
  return 'failed';
}
