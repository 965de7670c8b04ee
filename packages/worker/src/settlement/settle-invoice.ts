/**
 * The one way in which an invoice's fate reaches a run: called by the worker that paid it, by the
 * vendor's events and by the reconciler, at the same time and as often as they like. A paid invoice
 * grants once (the grant's key is the invoice), an ending is for ever, and what contradicts an ending
 * is set aside for a person instead of being applied.
 */
import type { Transaction } from '@sluice/database/connection/connection';
import { grantCredits } from '@sluice/database/credits/credits';
import { parkRun, type Run } from '@sluice/database/billing/runs';
import type { InvoiceStatus } from '@sluice/billing-vendor/port/vendor';
import { FAILURE_MESSAGES } from '@sluice/domain/billing/decline-message';
import { isSameMoney, type Money } from '@sluice/domain/values/money';
import { purchaseOf } from './run-step.ts';
import { recordEnding } from './record-ending.ts';

const DAY_MS = 86_400_000;

export interface InvoiceFate {
  readonly invoiceId: string;
  readonly status: InvoiceStatus;
  readonly total: Money;
}

/** What became of the run by it. */
export type Settlement = 'succeeded' | 'failed' | 'unchanged' | 'parked';

/** Call with the run locked by the transaction. @param run - as the lock found it. */
export async function settleInvoice(
  transaction: Transaction,
  run: Run,
  invoice: InvoiceFate,
  nowMs: number,
): Promise<Settlement> {
  const purchase = purchaseOf(run);
  const park = async (reason: string): Promise<Settlement> => {
    await parkRun(transaction, run, `${reason}: invoice ${invoice.invoiceId}`);
    return 'parked';
  };
  // A copy that somebody made of its invoice at the vendor names the run too.
  if (run.invoiceId !== null && run.invoiceId !== invoice.invoiceId)
    return invoice.status === 'paid' ? park(`paid beside ${run.invoiceId}`) : 'unchanged';
  if (invoice.status === 'paid') {
    if (run.status === 'success') return 'unchanged';
    if (run.status !== 'pending') return park(`paid after the run ended as ${run.status}`);
    const { total } = invoice;
    if (!isSameMoney(total, purchase.price))
      return park(
        `paid ${total.amount} ${total.currency}, not ${purchase.price.amount} ${purchase.price.currency}`,
      );
    await grantCredits(
      transaction,
      { accountId: run.accountId, kind: purchase.kind },
      {
        pool: 'purchased',
        amount: purchase.quantity,
        expiresAtMs:
          purchase.expiresAfterDays === null ? null : nowMs + purchase.expiresAfterDays * DAY_MS,
        key: `grant:invoice:${invoice.invoiceId}`,
      },
      nowMs,
    );
    const result = { charged: invoice.total, invoiceId: invoice.invoiceId };
    await recordEnding(transaction, run, { status: 'success', message: null, result }, nowMs);
    return 'succeeded';
  }
  const isGone = invoice.status === 'void' || invoice.status === 'deleted';
  if (!isGone) return 'unchanged';
  if (run.status === 'success') return park('void after it was paid and granted');
  // On the invoiced rail the run itself voids, and then ends as what came before says.
  if (run.status !== 'pending' || run.rail !== 'card') return 'unchanged';
  const result = { charged: null, invoiceId: invoice.invoiceId };
  const end = { status: 'failed', message: FAILURE_MESSAGES.expired, result } as const;
  await recordEnding(transaction, run, end, nowMs);
  return 'failed';
}
