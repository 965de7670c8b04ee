/**
 * Compares our ledger of purchases with the payment provider's, entry by entry.
 *
 * Each payment at the payment provider must be a purchase that succeeded and was granted once. A purchase without
 * success must have no invoice that can be collected.
 *
 * A purchase under way may differ by the step that it is in. Pure; `scripts/verify.ts` reads both.
 */
import { isSameMoney, type Money } from '../values/money.ts';
import type { PurchaseStatus } from './purchase-workflow.ts';

export interface BookedPurchase {
  readonly accountId: number;
  readonly runId: string;
  readonly status: PurchaseStatus;
  /** A person has to look at it. */
  readonly isSetAside: boolean;
  readonly invoiceId: string | null;
  readonly charged: Money | null;
  /** A bank has still to pay for it, or the payment provider has given that up. */
  readonly isAwaited: boolean;
  /** In minor units: the part of its price that has gone back to the customer. */
  readonly returned: number;
  /** Credits, for a purchase of credits; null for another. */
  readonly quantity: number | null;
  /** Credits given for its invoice. */
  readonly granted: number;
}

export interface BilledInvoice {
  readonly invoiceId: string;
  readonly status: string;
  readonly total: Money;
  readonly runId: string | null;
  readonly subscriptionId: string | null;
  /**
   * In minor units: the sum of the payments that were refunded or disputed, at least in part. It is 0 without such
   * payments. The rest of the total came from the customer's balance.
   */
  readonly taken: number;
  /** In minor units: the part of `taken` that has gone back to the customer. */
  readonly returned: number;
}

/** Each difference in a sentence. */
export function comparePurchases(
  purchases: readonly BookedPurchase[],
  invoices: readonly BilledInvoice[],
): string[] {
  const byRun = new Map(purchases.map((purchase) => [purchase.runId, purchase]));
  const byInvoice = new Map(invoices.map((invoice) => [invoice.invoiceId, invoice]));
  return [
    ...purchases.flatMap((purchase) =>
      judgePurchase(purchase, byInvoice).map((what) => `${nameOf(purchase)}: ${what}`),
    ),
    ...invoices.flatMap((invoice) =>
      judgeInvoice(invoice, byRun).map((what) => `invoice ${invoice.invoiceId}: ${what}`),
    ),
  ];
}

function judgePurchase(
  purchase: BookedPurchase,
  invoices: ReadonlyMap<string, BilledInvoice>,
): string[] {
  const { status, charged, invoiceId, quantity, granted, isSetAside, isAwaited } = purchase;
  const found: string[] = [];
  if (isSetAside) found.push('waits for a person');
  const due = status === 'success' ? (quantity ?? 0) : 0;
  if (granted !== due) found.push(`${granted} credits were given, not ${due}`);
  if (status !== 'success') return found;
  const invoice = invoices.get(invoiceId ?? '');
  if (isAwaited && (invoice?.status === 'paid' || invoice?.status === 'void'))
    found.push(`is still to be paid here, and its invoice ${invoiceId} is ${invoice.status}`);
  const { returned = 0 } = invoice ?? {};
  if (returned !== purchase.returned)
    found.push(
      `${purchase.returned} of its price was refunded here, ${returned} at the payment provider, of invoice ${invoiceId ?? ''}`,
    );
  if (charged === null || charged.amount === 0) return found;
  if (!invoice) found.push(`its invoice ${invoiceId ?? ''} is not known to the payment provider`);
  else if (invoice.status !== 'paid') found.push(`its invoice ${invoiceId} is ${invoice.status}`);
  else if (!isSameMoney(invoice.total, charged))
    found.push(`${show(charged)} here, ${show(invoice.total)} on its invoice ${invoiceId}`);
  return found;
}

/** A subscription's invoice names no purchase if it renews, and may be open while it is collected. */
function judgeInvoice(
  { invoiceId, status, runId, subscriptionId, taken, returned }: BilledInvoice,
  purchases: ReadonlyMap<string, BookedPurchase>,
): string[] {
  if (runId === null) return [];
  const purchase = purchases.get(runId);
  if (!purchase) return [`its purchase ${runId} is not in our ledger`];
  if (purchase.status === 'pending') return [];
  // A person has put right an invoice that is refunded whole.
  if (status === 'paid')
    return (purchase.status === 'success' && purchase.invoiceId === invoiceId) ||
      (taken > 0 && returned >= taken)
      ? []
      : [`it is paid beside ${nameOf(purchase)}, which is ${purchase.status}`];
  const isCollectable = status === 'open' || status === 'draft' || status === 'uncollectible';
  return isCollectable && subscriptionId === null
    ? [`it can still be collected, though ${nameOf(purchase)} is ${purchase.status}`]
    : [];
}

export interface BookedSubscriber {
  readonly accountId: number;
  readonly customerId: string;
  /** The prices that it has bought: the plan's price and the prices of its add-ons. */
  readonly priceIds: readonly string[];
}

export interface BilledSubscription {
  readonly subscriptionId: string;
  readonly customerId: string;
  readonly priceIds: readonly string[];
}

/** @param subscriptions - the ones that have not ended. */
export function compareSubscriptions(
  subscribers: readonly BookedSubscriber[],
  subscriptions: readonly BilledSubscription[],
): string[] {
  const found: string[] = [];
  const byCustomer = Map.groupBy(subscriptions, (each) => each.customerId);
  for (const [customerId, several] of byCustomer)
    if (several.length > 1)
      found.push(
        `customer ${customerId}: has ${several.length} subscriptions, ${several.map((each) => each.subscriptionId).join(', ')}`,
      );
  for (const { accountId, customerId, priceIds } of subscribers) {
    const held = new Set(byCustomer.get(customerId)?.flatMap((each) => each.priceIds));
    for (const priceId of priceIds)
      if (!held.has(priceId))
        found.push(`account ${accountId}: has bought ${priceId}, its subscription has not`);
  }
  return found;
}

const nameOf = ({ accountId, runId }: BookedPurchase): string =>
  `account ${accountId}, purchase ${runId}`;

const show = ({ amount, currency }: Money): string => `${amount} ${currency}`;
