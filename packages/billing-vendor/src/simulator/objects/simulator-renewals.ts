/**
 * Renewals of subscriptions of the simulated payment provider.
 *
 * At the end of a period the next one is invoiced and charged to the card on file. A card that refuses makes it
 * `past_due` and is tried again on the days below; then the subscription ends.
 *
 *     trialing ──trial over──▶ as below
 *     active ──period over──▶ invoice ──paid──▶ active
 *                               └─refused, or its holder──▶ past_due ──paid later──▶ active
 *                                 is asked for
 *                                               └─tries over──▶ canceled, its invoice uncollectible
 */
import { runningCoupon } from './simulator-coupons.ts';
import { emit } from '../engine/simulator-events.ts';
import { addLine, createInvoice, finalizeInvoice, payInvoice } from './simulator-invoices.ts';
import { currencyOf, intervalOf, itemsOf } from './simulator-items.ts';
import { periodEnd } from './simulator-periods.ts';
import { ProviderRefusal } from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';
import { cancelSubscription } from './simulator-subscriptions.ts';

const DAY_SECONDS = 86_400;
/** After the first one. */
const RETRY_DAYS = [3, 5, 7];

/** Call it whenever the clock has moved; each due renewal runs once. */
export function renewSubscriptions(state: SimulatorState): void {
  for (const { id } of state.list('subscription')) {
    // A clock that was moved by a year has twelve months to renew.
    while (renewOnce(state, state.get('subscription', id) as ProviderObject)) continue;
  }
}

function renewOnce(state: SimulatorState, subscription: ProviderObject): boolean {
  if (subscription['status'] === 'past_due') return collectAgain(state, subscription);
  const [first] = itemsOf(subscription);
  const isRunning = subscription['status'] === 'active' || subscription['status'] === 'trialing';
  if (!isRunning || !first) return false;
  if (first.current_period_end > state.nowSeconds()) return false;
  if (subscription['cancel_at_period_end'] === true) {
    cancelSubscription(state, subscription);
    return false;
  }
  const start = first.current_period_end;
  const end = periodEnd(
    Number(subscription['billing_cycle_anchor']),
    start,
    intervalOf(first.price),
  );
  const items = itemsOf(subscription).map((item) => ({
    ...item,
    current_period_start: start,
    current_period_end: end,
  }));
  const invoice = billPeriod(state, subscription, start, end);
  const isPaid = invoice['status'] === 'paid' || pay(state, invoice);
  const renewed = state.save('subscription', {
    ...subscription,
    items: { object: 'list', data: items, has_more: false },
    latest_invoice: invoice.id,
    status: isPaid ? 'active' : 'past_due',
    simulated_refused_at: isPaid ? null : start,
    simulated_tries: 0,
  });
  emit(state, 'customer.subscription.updated', renewed);
  return true;
}

/** The subscription's own invoice, which no purchase of ours made. */
function billPeriod(
  state: SimulatorState,
  subscription: ProviderObject,
  startSeconds: number,
  endSeconds: number,
): ProviderObject {
  const items = itemsOf(subscription);
  const draft = createInvoice(state, {
    customer: String(subscription['customer']),
    currency: currencyOf(items),
    metadata: {},
    collectionMethod: 'charge_automatically',
    autoAdvance: true,
    couponId: runningCoupon(state, subscription, startSeconds)?.id,
    subscription: {
      id: subscription.id,
      metadata: subscription['metadata'] as Record<string, string>,
      reason: 'subscription_cycle',
      cause: {},
    },
  });
  for (const { id, price, quantity } of items)
    addLine(state, state.get('invoice', draft.id) as ProviderObject, {
      amount: Number(price['unit_amount']) * quantity,
      description: `From ${new Date(startSeconds * 1_000).toISOString()}`,
      metadata: {},
      of: {
        subscriptionId: subscription.id,
        itemId: id,
        priceId: price.id,
        isProration: false,
        start: startSeconds,
        end: endSeconds,
      },
    });
  return finalizeInvoice(state, state.get('invoice', draft.id) as ProviderObject);
}

function collectAgain(state: SimulatorState, subscription: ProviderObject): boolean {
  const invoice = state.get('invoice', subscription['latest_invoice']) as ProviderObject;
  const tries = Number(subscription['simulated_tries']);
  const dueAt =
    Number(subscription['simulated_refused_at']) + (RETRY_DAYS[tries] ?? 0) * DAY_SECONDS;
  // Its customer may have paid it in between.
  if (invoice['status'] !== 'paid' && dueAt > state.nowSeconds()) return false;
  // A bank has days to pay; its result moves the subscription.
  const isProcessing = () =>
    state.get('payment_intent', invoice['simulated_payment_intent'])?.['status'] === 'processing';
  if (isProcessing()) return false;
  const isPaid = invoice['status'] === 'paid' || pay(state, invoice);
  if (isProcessing()) return false;
  if (!isPaid && tries + 1 === RETRY_DAYS.length) {
    const ended = state.save('invoice', { ...invoice, status: 'uncollectible' });
    emit(state, 'invoice.marked_uncollectible', ended);
    cancelSubscription(state, subscription);
    return false;
  }
  const tried = state.save('subscription', {
    ...subscription,
    status: isPaid ? 'active' : 'past_due',
    simulated_tries: tries + 1,
  });
  if (isPaid) emit(state, 'customer.subscription.updated', tried);
  return true;
}

/** @returns false if the card refuses, or the customer has no card. */
function pay(state: SimulatorState, invoice: ProviderObject): boolean {
  try {
    payInvoice(state, invoice, { isOnSession: false, isRenewal: true });
    return true;
  } catch (error) {
    if (error instanceof ProviderRefusal) return false;
    throw error;
  }
}
