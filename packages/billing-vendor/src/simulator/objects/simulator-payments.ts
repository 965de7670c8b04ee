/**
 * Customers, payment methods, payment intents and charges of the simulated payment provider. Every attempt to take
 * money, by any caller, goes through `charge` and leaves a row: the record of charges that tests ask.
 */
import { TEST_CARDS, type TestCard } from '../engine/simulator-cards.ts';
import { emit } from '../engine/simulator-events.ts';
import { invalid, noSuch, ProviderRefusal } from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

/** A saved card of the customer's own, made from one of the payment provider's test cards. */
export function attachPaymentMethod(
  state: SimulatorState,
  id: string,
  customerId: string,
): ProviderObject {
  const existing = state.get('payment_method', id);
  if (existing) {
    if (existing['customer'] !== null && existing['customer'] !== customerId)
      throw invalid('The payment method you provided has already been attached to a customer.');
    return state.save('payment_method', { ...existing, customer: customerId });
  }
  const card = TEST_CARDS[id];
  if (!card) throw noSuch('PaymentMethod', id);
  if (!card.canAttach) throw cardError(card, undefined);
  return state.save('payment_method', {
    id: state.newId('pm'),
    object: 'payment_method',
    type: card.settlesLate ? 'us_bank_account' : 'card',
    customer: customerId,
    created: state.nowSeconds(),
    livemode: false,
    billing_details: { name: null, email: null, phone: null, address: null },
    ...(card.settlesLate
      ? { us_bank_account: { last4: card.last4 } }
      : {
          card: {
            brand: card.brand,
            last4: card.last4,
            exp_month: 12,
            exp_year: 2034,
            funding: 'credit',
          },
        }),
    metadata: {},
    simulated_card: id,
  });
}

/** The card behind a saved method, or a test card used as it is. */
export function cardOf(state: SimulatorState, paymentMethodId: string): TestCard {
  const saved = state.get('payment_method', paymentMethodId);
  const card = TEST_CARDS[saved ? String(saved['simulated_card']) : paymentMethodId];
  if (!card) throw noSuch('PaymentMethod', paymentMethodId);
  return card;
}

export function defaultPaymentMethodOf(state: SimulatorState, customerId: string): string | null {
  const customer = state.get('customer', customerId);
  const settings = customer?.['invoice_settings'] as { default_payment_method?: unknown };
  const id = settings?.default_payment_method;
  return typeof id === 'string' ? id : null;
}

export interface ChargeRequest {
  readonly customerId: string;
  readonly paymentMethodId: string | null;
  readonly amount: number;
  readonly currency: string;
  readonly invoiceId: string | null;
  readonly paymentIntentId: string | null;
  /** Metadata of the purchase behind it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The cardholder confirms it themselves. */
  readonly isOnSession: boolean;
}

/**
 * A bank account's is `pending` (`simulator-late-payments.ts`), a card's has succeeded.
 *
 * @throws ProviderRefusal 402 if the card is declined; a failed charge is kept of it.
 */
export function charge(state: SimulatorState, request: ChargeRequest): ProviderObject {
  if (request.paymentMethodId === null)
    throw invalid('There is no `default_payment_method` set on this Customer or Invoice.', {
      code: 'missing',
    });
  const card = cardOf(state, request.paymentMethodId);
  const isDeclined =
    card.decline !== null &&
    !card.settlesLate &&
    !(card.needsCardholder === true && request.isOnSession);
  const status = isDeclined ? 'failed' : card.settlesLate ? 'pending' : 'succeeded';
  const made = state.save('charge', {
    id: state.newId('ch'),
    object: 'charge',
    amount: request.amount,
    currency: request.currency,
    customer: request.customerId,
    payment_method: request.paymentMethodId,
    payment_intent: request.paymentIntentId,
    invoice: request.invoiceId,
    status,
    amount_refunded: 0,
    refunded: false,
    disputed: false,
    created: state.nowSeconds(),
    metadata: request.metadata,
  });
  emit(state, `charge.${status}`, made);
  if (isDeclined) throw cardError(card, request.paymentIntentId ?? undefined);
  return made;
}

function cardError(card: TestCard, paymentIntentId: string | undefined): ProviderRefusal {
  return new ProviderRefusal(402, 'card_error', 'Your card was declined.', {
    code: card.decline?.code ?? 'card_declined',
    ...(card.decline?.declineCode != null && { decline_code: card.decline.declineCode }),
    ...(paymentIntentId !== undefined && { payment_intent: { id: paymentIntentId } }),
  });
}

export function createPaymentIntent(
  state: SimulatorState,
  invoice: { readonly id: string; readonly customer: string; readonly amount: number },
  currency: string,
): ProviderObject {
  const id = state.newId('pi');
  return state.save('payment_intent', {
    id,
    object: 'payment_intent',
    amount: invoice.amount,
    currency,
    customer: invoice.customer,
    client_secret: `${id}_secret_${state.newId('s')}`,
    status: 'requires_payment_method',
    last_payment_error: null,
    created: state.nowSeconds(),
    metadata: {},
    simulated_invoice: invoice.id,
  });
}
