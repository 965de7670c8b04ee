/**
 * Payments by a bank over time: days after it was taken on, one succeeds or fails.
 *
 *     pay ──▶ charge pending, intent processing, invoice open
 *               └─4 days─▶ charge succeeded, invoice paid
 *                        ▶ charge failed, intent with its error, invoice still open,
 *                          its subscription past due
 */
import { emit } from '../engine/simulator-events.ts';
import { markPaid } from './simulator-invoices.ts';
import { cardOf } from './simulator-payments.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

const DAY_SECONDS = 86_400;
/** Of an ACH debit, by the payment provider's documentation. */
export const SETTLING_SECONDS = 4 * DAY_SECONDS;

/** Call it whenever the clock has moved; each due payment ends once. */
export function settleLatePayments(state: SimulatorState): void {
  for (const charge of state.list('charge')) {
    if (charge['status'] !== 'pending') continue;
    if (Number(charge['created']) + SETTLING_SECONDS > state.nowSeconds()) continue;
    settle(state, charge);
  }
}

function settle(state: SimulatorState, charge: ProviderObject): void {
  const { decline } = cardOf(state, String(charge['payment_method']));
  const intent = state.get('payment_intent', charge['payment_intent']);
  const invoice = state.get('invoice', charge['invoice']);
  const status = decline ? 'failed' : 'succeeded';
  emit(state, `charge.${status}`, state.save('charge', { ...charge, status }));
  if (!intent || !invoice) return;
  if (!decline) {
    const paid = state.save('payment_intent', { ...intent, status });
    emit(state, 'payment_intent.succeeded', paid);
    markPaid(state, invoice, Number(charge['amount']));
    moveSubscription(state, invoice, { from: 'past_due', to: 'active' });
    return;
  }
  const failed = state.save('payment_intent', {
    ...intent,
    status: 'requires_payment_method',
    last_payment_error: {
      type: 'card_error',
      code: decline.code,
      ...(decline.declineCode !== null && { decline_code: decline.declineCode }),
      message: 'The payment failed.',
    },
  });
  emit(state, 'payment_intent.payment_failed', failed);
  emit(state, 'invoice.payment_failed', invoice);
  moveSubscription(state, invoice, { from: 'active', to: 'past_due' });
}

/** Of the subscription's latest invoice only: then it is collected as a renewal is (`simulator-renewals.ts`). */
function moveSubscription(
  state: SimulatorState,
  invoice: ProviderObject,
  status: { readonly from: string; readonly to: string },
): void {
  const parent = invoice['parent'] as { subscription_details: { subscription: string } } | null;
  const subscription = state.get('subscription', parent?.subscription_details.subscription);
  if (subscription?.['status'] !== status.from || subscription['latest_invoice'] !== invoice.id)
    return;
  const moved = state.save('subscription', {
    ...subscription,
    status: status.to,
    simulated_refused_at: state.nowSeconds(),
    simulated_tries: 0,
  });
  emit(state, 'customer.subscription.updated', moved);
}
