/**
 * Invoices of the simulated payment provider: draft → open → paid or void. A draft may be deleted; `paid` and `void`
 * are final. An open invoice has a payment intent that its customer may confirm. While a bank's payment is `processing`
 * it stays open, and can neither be paid again nor be void. Credit of its customer pays for it as it is finalized,
 * wholly or in part.
 */
import { emit } from '../engine/simulator-events.ts';
import { shareDiscount } from './simulator-items.ts';
import { linesOf, netOf, toLine, type InvoiceLine, type NewLine } from './simulator-lines.ts';
import { charge, createPaymentIntent, defaultPaymentMethodOf } from './simulator-payments.ts';
import { invalid, ProviderRefusal } from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

/** Start of the addresses of the pages on which customers pay (`simulator-payment-page.ts`). */
export const PAYMENT_PAGES = '/simulator/pay/';

export interface NewInvoice {
  readonly customer: string;
  readonly currency: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly collectionMethod: string;
  readonly autoAdvance: boolean;
  /** Reduces its lines; absent without a coupon. */
  readonly couponId?: string | undefined;
  /** Null: it is for one purchase. */
  readonly subscription: {
    readonly id: string;
    readonly metadata: Readonly<Record<string, string>>;
    readonly reason: 'subscription_create' | 'subscription_update' | 'subscription_cycle';
    /**
     * The purchase that the record of charges names for its charge; the payment provider's invoice does not name it.
     */
    readonly cause: Readonly<Record<string, string>>;
  } | null;
}

export function createInvoice(state: SimulatorState, request: NewInvoice): ProviderObject {
  const invoice = state.save('invoice', {
    id: state.newId('in'),
    object: 'invoice',
    customer: request.customer,
    currency: request.currency,
    status: 'draft',
    collection_method: request.collectionMethod,
    auto_advance: request.autoAdvance,
    metadata: request.metadata,
    lines: { object: 'list', data: [], has_more: false },
    total: 0,
    amount_due: 0,
    amount_paid: 0,
    amount_remaining: 0,
    created: state.nowSeconds(),
    livemode: false,
    billing_reason: request.subscription?.reason ?? 'manual',
    parent: request.subscription && {
      type: 'subscription_details',
      subscription_details: {
        subscription: request.subscription.id,
        metadata: request.subscription.metadata,
      },
    },
    simulated_cause: request.subscription?.cause ?? request.metadata,
    simulated_coupon: request.couponId ?? null,
    status_transitions: { finalized_at: null, paid_at: null, voided_at: null },
    simulated_payment_intent: null,
    hosted_invoice_url: null,
  });
  emit(state, 'invoice.created', invoice);
  return invoice;
}

export function addLine(
  state: SimulatorState,
  invoice: ProviderObject,
  line: NewLine,
): InvoiceLine {
  if (invoice['status'] !== 'draft')
    throw invalid('Invoice items can only be added to draft invoices.', {
      code: 'invoice_not_editable',
    });
  const made = toLine(state.newId('il'), line, state.nowSeconds());
  const lines = withDiscounts(state, invoice, [...linesOf(invoice), made]);
  const total = lines.reduce((sum, each) => sum + netOf(each), 0);
  state.save('invoice', {
    ...invoice,
    lines: { object: 'list', data: lines, has_more: false },
    total,
    amount_due: total,
    amount_remaining: total,
  });
  return made;
}

/** The lines, each with its part of the invoice's coupon. */
function withDiscounts(
  state: SimulatorState,
  invoice: ProviderObject,
  lines: readonly InvoiceLine[],
): readonly InvoiceLine[] {
  const coupon = state.get('coupon', invoice['simulated_coupon']);
  if (!coupon) return lines;
  const discounts = shareDiscount(
    lines.map(({ amount }) => amount),
    coupon,
  );
  return lines.map((line, index) => ({
    ...line,
    discount_amounts: [{ amount: discounts[index] ?? 0, discount: coupon.id }],
  }));
}

export function finalizeInvoice(state: SimulatorState, invoice: ProviderObject): ProviderObject {
  if (invoice['status'] !== 'draft')
    throw invalid('This invoice is already finalized.', { code: 'invoice_no_longer_draft' });
  const total = Number(invoice['total']);
  const applied = applyBalance(state, String(invoice['customer']), total);
  const due = Math.max(0, total - applied);
  // An amount of 0 needs no payment: then there is no client secret either.
  const intent =
    due === 0
      ? undefined
      : createPaymentIntent(
          state,
          { id: invoice.id, customer: String(invoice['customer']), amount: due },
          String(invoice['currency']),
        );
  const open = state.save('invoice', {
    ...invoice,
    status: 'open',
    amount_due: due,
    amount_remaining: due,
    simulated_applied: applied,
    simulated_payment_intent: intent?.id ?? null,
    hosted_invoice_url: `${state.origin}${PAYMENT_PAGES}${invoice.id}`,
    status_transitions: {
      ...(invoice['status_transitions'] as object),
      finalized_at: state.nowSeconds(),
    },
  });
  emit(state, 'invoice.finalized', open);
  return due === 0 ? markPaid(state, open, 0) : open;
}

/**
 * The customer's credit, which is a negative balance, is used first. A negative invoice (more unused time than new)
 * is not paid back but adds to the credit. @returns how much of the credit is used.
 */
function applyBalance(state: SimulatorState, customerId: string, total: number): number {
  const customer = state.get('customer', customerId);
  const balance = Number(customer?.['balance'] ?? 0);
  const applied = Math.min(Math.max(0, -balance), total);
  if (customer && applied !== 0)
    state.save('customer', { ...customer, balance: balance + applied });
  return applied;
}

/** Gives the credit back, of an invoice that is not paid after all. */
export function returnBalance(state: SimulatorState, invoice: ProviderObject): void {
  const customer = state.get('customer', invoice['customer']);
  const applied = Number(invoice['simulated_applied'] ?? 0);
  if (customer && applied > 0)
    state.save('customer', { ...customer, balance: Number(customer['balance']) - applied });
}

/**
 * Charges the card given, or the customer's default. A bank account leaves the invoice open.
 *
 * @throws ProviderRefusal 402 if it is declined.
 */
export function payInvoice(
  state: SimulatorState,
  invoice: ProviderObject,
  options: {
    readonly paymentMethodId?: string | undefined;
    readonly isOnSession: boolean;
    /** The payment provider collects by itself: a card that asks for its holder waits for them. */
    readonly isRenewal?: boolean;
  },
): ProviderObject {
  if (invoice['status'] === 'paid')
    throw invalid('Invoice is already paid', { code: 'invoice_already_paid' });
  if (invoice['status'] !== 'open' && invoice['status'] !== 'uncollectible')
    throw invalid(`Invoice cannot be paid: it is ${String(invoice['status'])}.`, {
      code: 'invoice_not_open',
    });
  const customerId = String(invoice['customer']);
  const intent = state.get('payment_intent', invoice['simulated_payment_intent']);
  refuseWhileProcessing(intent);
  let made: ProviderObject;
  try {
    made = charge(state, {
      customerId,
      paymentMethodId: options.paymentMethodId ?? defaultPaymentMethodOf(state, customerId),
      amount: Number(invoice['amount_due']),
      currency: String(invoice['currency']),
      invoiceId: invoice.id,
      paymentIntentId: intent?.id ?? null,
      metadata: invoice['simulated_cause'] as Record<string, string>,
      isOnSession: options.isOnSession,
    });
  } catch (error) {
    const isAsking =
      options.isRenewal === true &&
      error instanceof ProviderRefusal &&
      error.details['code'] === 'authentication_required';
    // Without an amount to charge no payment was tried.
    if (error instanceof ProviderRefusal && error.type === 'card_error' && intent)
      state.save('payment_intent', {
        ...intent,
        last_payment_error: { type: error.type, message: error.message, ...error.details },
        ...(isAsking && { status: 'requires_action' }),
      });
    if (error instanceof ProviderRefusal) emit(state, 'invoice.payment_failed', invoice);
    if (isAsking) emit(state, 'invoice.payment_action_required', invoice);
    throw error;
  }
  if (made['status'] === 'pending' && intent) {
    const processing = state.save('payment_intent', { ...intent, status: 'processing' });
    emit(state, 'payment_intent.processing', processing);
    return invoice;
  }
  if (intent) {
    const paid = state.save('payment_intent', { ...intent, status: 'succeeded' });
    emit(state, 'payment_intent.succeeded', paid);
  }
  return markPaid(state, invoice, Number(invoice['amount_due']));
}

/** @throws ProviderRefusal 400 */
function refuseWhileProcessing(intent: ProviderObject | undefined): void {
  if (intent?.['status'] === 'processing')
    throw invalid('The payment of this invoice is being processed.', {
      code: 'payment_intent_unexpected_state',
    });
}

export function markPaid(
  state: SimulatorState,
  invoice: ProviderObject,
  amount: number,
): ProviderObject {
  const paid = state.save('invoice', {
    ...invoice,
    status: 'paid',
    amount_paid: amount,
    amount_remaining: 0,
    status_transitions: {
      ...(invoice['status_transitions'] as object),
      paid_at: state.nowSeconds(),
    },
  });
  emit(state, 'invoice.paid', paid);
  emit(state, 'invoice.payment_succeeded', paid);
  return paid;
}

export function voidInvoice(state: SimulatorState, invoice: ProviderObject): ProviderObject {
  if (invoice['status'] !== 'open' && invoice['status'] !== 'uncollectible')
    throw invalid(
      `You can only pass in open invoices. This invoice is ${String(invoice['status'])}.`,
      {
        code: 'invoice_not_open',
      },
    );
  const intent = state.get('payment_intent', invoice['simulated_payment_intent']);
  refuseWhileProcessing(intent);
  if (intent) state.save('payment_intent', { ...intent, status: 'canceled' });
  returnBalance(state, invoice);
  const voided = state.save('invoice', {
    ...invoice,
    status: 'void',
    amount_remaining: 0,
    status_transitions: {
      ...(invoice['status_transitions'] as object),
      voided_at: state.nowSeconds(),
    },
  });
  emit(state, 'invoice.voided', voided);
  return voided;
}
