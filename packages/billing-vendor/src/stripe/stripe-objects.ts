/** The payment provider's objects in our words: only the parts that billing asks of them. */
import type Stripe from 'stripe';
import type {
  CardOnFile,
  InvoicePayment,
  InvoiceStatus,
  SubscriptionItem,
  ProviderCustomer,
  ProviderInvoice,
  ProviderSubscription,
} from '../port/payment-provider.ts';
import type { SubscriptionLine } from '@sluice/domain/billing/unused-time';

export const toInvoice = (invoice: Stripe.Invoice): ProviderInvoice => ({
  invoiceId: invoice.id ?? '',
  customerId: idOf(invoice.customer) ?? '',
  status: (invoice.status ?? 'draft') as InvoiceStatus,
  total: { amount: invoice.total, currency: invoice.currency },
  amountRemaining: invoice.amount_remaining,
  amountDue: invoice.amount_due,
  runId: invoice.metadata?.['run_id'] ?? runIdOfChange(invoice),
  accountId: accountIdOf(invoice.metadata?.['account_id']),
  lineCount: invoice.lines.data.length,
  subscriptionLines: invoice.lines.data.flatMap((line) => toSubscriptionLine(line)),
  withheld: invoice.lines.data.filter(isWithheld).reduce((sum, line) => sum + line.amount, 0),
  clientSecret: invoice.confirmation_secret?.client_secret ?? null,
  paymentPage: invoice.hosted_invoice_url ?? null,
  payment: paymentOf(invoice),
  subscriptionId: idOf(invoice.parent?.subscription_details?.subscription),
});

/** Marks the line that charges refunded credit again. */
export const WITHHELD = { withheld: 'refunded' } as const;

const isWithheld = ({ metadata }: Stripe.InvoiceLineItem): boolean =>
  metadata?.['withheld'] === WITHHELD.withheld;

/** A change within a period makes lines of either parent. Empty if it is for one purchase. */
export function toSubscriptionLine(line: Stripe.InvoiceLineItem): SubscriptionLine[] {
  if (isWithheld(line)) return [];
  const { parent, pricing, amount, discount_amounts: discounts, period } = line;
  const details = parent?.subscription_item_details ?? parent?.invoice_item_details;
  const subscriptionId = details?.subscription;
  const priceId = idOf(pricing?.price_details?.price);
  if (subscriptionId == null || priceId === null) return [];
  const discount = (discounts ?? []).reduce((sum, each) => sum + Math.abs(each.amount), 0);
  const isCredit = amount < 0;
  return [
    {
      subscriptionId,
      priceId,
      amount: isCredit ? Math.min(0, amount + discount) : amount - discount,
      periodEndMs: period.end * 1_000,
    },
  ];
}

/** The payment provider keeps one intent an invoice, whose state is the state of the latest attempt. */
function paymentOf({ payments }: Stripe.Invoice): InvoicePayment | null {
  const intent = payments?.data.find((each) => each.is_default)?.payment.payment_intent;
  if (typeof intent !== 'object') return null;
  const { status, last_payment_error: error } = intent;
  // `succeeded`: the invoice will be paid in a moment.
  if (status === 'processing' || status === 'succeeded') return { state: 'processing' };
  if (status === 'requires_action')
    return { state: 'failed', declineCode: 'authentication_required' };
  return status === 'requires_payment_method' && error
    ? { state: 'failed', declineCode: error.decline_code ?? error.code ?? null }
    : null;
}

const CHANGE_REASONS: ReadonlySet<string> = new Set(['subscription_create', 'subscription_update']);

/**
 * The invoice keeps the subscription's metadata from when it was made; for a renewal that is about an earlier purchase.
 */
function runIdOfChange(invoice: Stripe.Invoice): string | null {
  if (!CHANGE_REASONS.has(invoice.billing_reason ?? '')) return null;
  return invoice.parent?.subscription_details?.metadata?.['run_id'] ?? null;
}

export function toSubscription(subscription: Stripe.Subscription): ProviderSubscription {
  const [first] = subscription.items.data;
  const latest = subscription.latest_invoice;
  return {
    subscriptionId: subscription.id,
    customerId: idOf(subscription.customer) ?? '',
    status: subscription.status,
    interval: first?.price.recurring?.interval === 'year' ? 'year' : 'month',
    items: subscription.items.data.map((item): SubscriptionItem => ({
      itemId: item.id,
      priceId: item.price.id,
      quantity: item.quantity ?? 1,
      runId: item.metadata['run_id'] ?? null,
    })),
    currentPeriodStartMs: (first?.current_period_start ?? 0) * 1_000,
    currentPeriodEndMs: (first?.current_period_end ?? 0) * 1_000,
    isEndingAtPeriodEnd: subscription.cancel_at_period_end,
    ...latestInvoice(latest),
    runId: subscription.metadata['run_id'] ?? null,
  };
}

function latestInvoice(latest: Stripe.Subscription['latest_invoice']) {
  const isExpanded = typeof latest === 'object' && latest !== null;
  return {
    latestInvoiceId: idOf(latest),
    latestInvoiceTotal: isExpanded
      ? { amount: Math.max(0, latest.total), currency: latest.currency }
      : null,
    latestInvoiceStatus: isExpanded ? ((latest.status ?? 'draft') as InvoiceStatus) : null,
  };
}

/** As the purchase left it: without a later invoice, and without an earlier one if it made no invoice itself. */
export const withInvoiceOf = (
  runId: string,
  subscription: Stripe.Subscription,
  invoice: Stripe.Subscription['latest_invoice'] | undefined,
): ProviderSubscription => ({
  ...toSubscription(subscription),
  ...latestInvoice(
    typeof invoice === 'object' && invoice !== null && toInvoice(invoice).runId === runId
      ? invoice
      : null,
  ),
});

/** The payment provider's balance is the customer's debt, so credit is a negative number. */
export const toCustomer = (customer: Stripe.Customer): ProviderCustomer => ({
  taxExempt: customer.tax_exempt ?? 'none',
  creditAmount: Math.max(0, -customer.balance),
  hasPaymentMethod: customer.invoice_settings.default_payment_method != null,
});

export const toCard = (method: Stripe.PaymentMethod): CardOnFile => ({
  paymentMethodId: method.id,
  type: method.type,
  brand: method.card?.brand ?? '',
  last4: method.card?.last4 ?? '',
  expMonth: method.card?.exp_month ?? 0,
  expYear: method.card?.exp_year ?? 0,
  funding: method.card?.funding ?? 'unknown',
  holderName: method.billing_details.name,
  createdAtMs: method.created * 1_000,
});

function accountIdOf(text: string | undefined): number | null {
  const accountId = Number(text ?? '');
  return Number.isSafeInteger(accountId) && accountId > 0 ? accountId : null;
}

/** If the payment provider gives an id or, when asked, the object itself. */
export function idOf(reference: unknown): string | null {
  if (typeof reference === 'string') return reference;
  if (typeof reference !== 'object' || reference === null || !('id' in reference)) return null;
  return typeof reference.id === 'string' ? reference.id : null;
}
