/**
 * Subscriptions of the simulated payment provider. A change is paid for at once or does not happen
 * (`error_if_incomplete`): the card is charged before anything is kept.
 */
import { couponOf, redeemCoupon, runningCoupon } from './simulator-coupons.ts';
import { emit } from '../engine/simulator-events.ts';
import {
  addLine,
  createInvoice,
  finalizeInvoice,
  payInvoice,
  returnBalance,
  type NewInvoice,
} from './simulator-invoices.ts';
import { changeItems, currencyOf, intervalOf, priceOf, type Item } from './simulator-items.ts';
import { toLine, type NewLine } from './simulator-lines.ts';
import { periodEnd } from './simulator-periods.ts';
import {
  flagOf,
  formOf,
  formsOf,
  integerOf,
  invalid,
  metadataOf,
  noSuch,
  required,
  textOf,
  ProviderRefusal,
  type Form,
} from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

const DAY_SECONDS = 86_400;

export function createSubscription(state: SimulatorState, body: Form): ProviderObject {
  const customer = required(body['customer'], 'customer');
  if (!state.get('customer', customer)) throw noSuch('customer', customer);
  const start = state.nowSeconds();
  const trialDays = integerOf(body['trial_period_days'], 'trial_period_days') ?? 0;
  const isTrial = trialDays > 0;
  // The first cycle begins at the end of the trial.
  const anchor = start + trialDays * DAY_SECONDS;
  const coupon = couponOf(state, body['discounts']);
  const items = formsOf(body['items']).map((each): Item => {
    const price = priceOf(state, required(each['price'], 'items[price]'));
    return {
      id: state.newId('si'),
      price,
      quantity: integerOf(each['quantity'], 'quantity') ?? 1,
      metadata: metadataOf(each['metadata']),
      current_period_start: start,
      current_period_end: isTrial ? anchor : periodEnd(start, start, intervalOf(price)),
    };
  });
  const id = state.newId('sub');
  const metadata = metadataOf(body['metadata']);
  const invoice = payAtOnce(state, {
    customer,
    subscription: { id, metadata, reason: 'subscription_create', cause: metadata },
    currency: currencyOf(items),
    couponId: coupon?.id,
    lines: items.map((item) => ({
      amount: isTrial ? 0 : Number(item.price['unit_amount']) * item.quantity,
      description: 'Subscription',
      metadata,
      of: {
        subscriptionId: id,
        itemId: item.id,
        priceId: item.price.id,
        isProration: false,
        start: item.current_period_start,
        end: item.current_period_end,
      },
    })),
    paymentMethodId: textOf(body['default_payment_method']),
  });
  const subscription = state.save('subscription', {
    id,
    object: 'subscription',
    customer,
    status: isTrial ? 'trialing' : 'active',
    trial_end: isTrial ? anchor : null,
    items: { object: 'list', data: items, has_more: false },
    metadata,
    currency: items[0]?.price['currency'] ?? 'usd',
    ...(coupon ? redeemCoupon(state, coupon) : { discounts: [] }),
    billing_cycle_anchor: anchor,
    default_payment_method: textOf(body['default_payment_method']) ?? null,
    cancel_at_period_end: false,
    latest_invoice: invoice.id,
    created: start,
    livemode: false,
  });
  emit(state, 'customer.subscription.created', subscription);
  return subscription;
}

export function updateSubscription(
  state: SimulatorState,
  subscription: ProviderObject,
  body: Form,
): ProviderObject {
  if (subscription['status'] === 'canceled')
    throw invalid('A canceled subscription can only update its cancellation_details.');
  const given = couponOf(state, body['discounts']);
  const coupon = given ?? runningCoupon(state, subscription, state.nowSeconds());
  const change = changeItems(state, subscription, body, coupon);
  const metadata = {
    ...(subscription['metadata'] as Record<string, string>),
    ...metadataOf(body['metadata']),
  };
  const [line] = change.lines;
  const invoice =
    line && textOf(body['proration_behavior']) === 'always_invoice'
      ? payAtOnce(state, {
          customer: String(subscription['customer']),
          subscription: {
            id: subscription.id,
            metadata,
            reason: 'subscription_update',
            cause: line.metadata,
          },
          currency: String(subscription['currency']),
          lines: [...change.lines, ...extraLines(body['add_invoice_items'])],
          paymentMethodId: textOf(body['default_payment_method']),
        })
      : undefined;
  const updated = state.save('subscription', {
    ...subscription,
    items: { object: 'list', data: change.items, has_more: false },
    metadata,
    ...(change.anchor !== undefined && { billing_cycle_anchor: change.anchor }),
    ...(given && redeemCoupon(state, given)),
    ...(invoice && { latest_invoice: invoice.id }),
    ...(body['cancel_at_period_end'] !== undefined && {
      cancel_at_period_end: flagOf(body['cancel_at_period_end']),
    }),
  });
  emit(state, 'customer.subscription.updated', updated);
  return updated;
}

/** @throws ProviderRefusal 404 if it has ended already, as the payment provider does. */
export function cancelSubscription(
  state: SimulatorState,
  subscription: ProviderObject,
): ProviderObject {
  if (subscription['status'] === 'canceled') throw noSuch('subscription', subscription.id);
  const canceled = state.save('subscription', { ...subscription, status: 'canceled' });
  emit(state, 'customer.subscription.deleted', canceled);
  return canceled;
}

/** The invoice that a change would make; it is not stored. */
export function previewInvoice(state: SimulatorState, body: Form): ProviderObject {
  const id = required(body['subscription'], 'subscription');
  const subscription = state.get('subscription', id);
  if (!subscription) throw noSuch('subscription', id);
  const coupon =
    couponOf(state, body['discounts']) ?? runningCoupon(state, subscription, state.nowSeconds());
  const details = body['subscription_details'] as Form;
  const change = changeItems(state, subscription, details, coupon);
  const lines = [...change.lines, ...extraLines(body['invoice_items'])];
  const total = lines.reduce((sum, line) => sum + line.amount, 0);
  return {
    id: 'upcoming_in',
    object: 'invoice',
    currency: subscription['currency'],
    customer: subscription['customer'],
    lines: {
      object: 'list',
      data: lines.map((line, index) => toLine(`il_upcoming_${index}`, line, state.nowSeconds())),
      has_more: false,
    },
    total,
    amount_due: Math.max(0, total),
  };
}

/** Of an inline price; as at the payment provider, it has no discount if it is not discountable. */
const extraLines = (given: Form[string] | undefined): NewLine[] =>
  formsOf(given).map((each) => ({
    amount: integerOf(formOf(each['price_data'])['unit_amount'], 'unit_amount') ?? 0,
    description: null,
    metadata: metadataOf(each['metadata']),
  }));

interface ImmediatePayment {
  readonly customer: string;
  readonly subscription: NewInvoice['subscription'];
  readonly currency: string;
  /** Reduces its lines. Absent without a coupon, or if the lines are reduced already. */
  readonly couponId?: string | undefined;
  readonly lines: readonly NewLine[];
  readonly paymentMethodId: string | undefined;
}

/** An invoice that is paid, or no invoice: a declined one is taken away again, as with the payment provider. */
function payAtOnce(state: SimulatorState, payment: ImmediatePayment): ProviderObject {
  const draft = createInvoice(state, {
    customer: payment.customer,
    currency: payment.currency,
    metadata: {},
    collectionMethod: 'charge_automatically',
    autoAdvance: true,
    couponId: payment.couponId,
    subscription: payment.subscription,
  });
  for (const line of payment.lines)
    addLine(state, state.get('invoice', draft.id) as ProviderObject, line);
  const open = finalizeInvoice(state, state.get('invoice', draft.id) as ProviderObject);
  if (open['status'] === 'paid') return open;
  try {
    return payInvoice(state, open, {
      paymentMethodId: payment.paymentMethodId,
      isOnSession: false,
    });
  } catch (error) {
    if (error instanceof ProviderRefusal) {
      returnBalance(state, open);
      state.delete('invoice', draft.id);
    }
    throw error;
  }
}
