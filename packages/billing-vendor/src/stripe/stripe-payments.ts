/** Returns of taken money, as the payment provider's SDK has them. */
import type { Stripe } from 'stripe';
import { isMissing, LOOKUP_COUNT_MAX, pageOf, part } from './stripe-lists.ts';
import { idOf } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import type { PaymentProvider, ProviderPayment } from '../port/payment-provider.ts';

type Payments = Pick<PaymentProvider, 'readPayment' | 'listReversedCharges'>;

export function createStripePayments(stripe: Stripe): Payments {
  const chargeIdOf = async (about: 'charge' | 'refund' | 'dispute', id: string) => {
    if (about === 'charge') return id;
    return about === 'refund'
      ? idOf((await stripe.refunds.retrieve(id)).charge)
      : idOf((await stripe.disputes.retrieve(id)).charge);
  };

  return {
    listReversedCharges: (about, after) =>
      callStripe(async () =>
        about === 'refund'
          ? pageOf(await stripe.refunds.list(part(after)), ({ charge }) => idOf(charge))
          : pageOf(await stripe.disputes.list(part(after)), ({ charge }) => idOf(charge)),
      ),

    readPayment: (about, id) =>
      callStripe(async () => {
        try {
          const chargeId = await chargeIdOf(about, id);
          if (chargeId === null) return null;
          return await toPayment(stripe, await stripe.charges.retrieve(chargeId));
        } catch (error) {
          if (isMissing(error)) return null;
          throw error;
        }
      }),
  };
}

/** Asks for the parts that a charge does not contain: the invoice that it paid, and how its disputes ended. */
export async function toPayment(stripe: Stripe, charge: Stripe.Charge): Promise<ProviderPayment> {
  const lost = await lostAmountOf(stripe, charge);
  return {
    invoiceId: await invoiceIdOf(stripe, charge),
    taken: { amount: charge.amount, currency: charge.currency },
    amountReturned: Math.min(charge.amount, charge.amount_refunded + lost),
    cause: lost > 0 ? 'dispute' : 'refund',
  };
}

async function lostAmountOf(stripe: Stripe, charge: Stripe.Charge): Promise<number> {
  if (!charge.disputed) return 0;
  const disputes = await stripe.disputes.list({ charge: charge.id, limit: LOOKUP_COUNT_MAX });
  return disputes.data
    .filter(({ status }) => status === 'lost')
    .reduce((sum, { amount }) => sum + amount, 0);
}

async function invoiceIdOf(stripe: Stripe, charge: Stripe.Charge): Promise<string | null> {
  const intent = idOf(charge.payment_intent);
  if (intent === null) return null;
  const { data } = await stripe.invoicePayments.list({
    payment: { type: 'payment_intent', payment_intent: intent },
    limit: 1,
  });
  return idOf(data[0]?.invoice);
}
