/**
 * Refunds and balances beside the credits of a subscription.
 *
 * They are as the payment provider's SDK has them.
 */
import type { Stripe } from 'stripe';
import { completeLines } from './stripe-invoices.ts';
import { isMissing, LOOKUP_COUNT_MAX } from './stripe-lists.ts';
import { toInvoice } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import { toPayment } from './stripe-payments.ts';
import type { PaymentProvider } from '../port/payment-provider.ts';

type UnusedTime = Pick<
  PaymentProvider,
  'listInvoicesOfSubscription' | 'readCreditTakenBack' | 'takeBackCredit'
>;

/** In a balance transaction's metadata: the subscription whose credit it takes back. */
const TAKEN_BACK_OF = 'taken_back_of';

export function createStripeUnusedTime(stripe: Stripe): UnusedTime {
  /** By invoice, since a time in Unix seconds. */
  const listReturned = async (customer: string, since: number) => {
    const returned = new Map<string, number>();
    const charges = stripe.charges.list({
      customer,
      created: { gte: since },
      limit: LOOKUP_COUNT_MAX,
    });
    for await (const charge of charges) {
      if (charge.amount_refunded === 0 && !charge.disputed) continue;
      const { invoiceId, amountReturned } = await toPayment(stripe, charge);
      if (invoiceId !== null)
        returned.set(invoiceId, (returned.get(invoiceId) ?? 0) + amountReturned);
    }
    return returned;
  };

  return {
    listInvoicesOfSubscription: (customerId, subscriptionId) =>
      callStripe(async () => {
        const { data } = await stripe.invoices.list({
          customer: customerId,
          subscription: subscriptionId,
          limit: LOOKUP_COUNT_MAX,
        });
        const oldest = data.at(-1);
        if (!oldest) return [];
        const returned = await listReturned(customerId, oldest.created);
        for (const invoice of data) await completeLines(stripe, invoice);
        return data.toReversed().map((wire) => {
          const invoice = toInvoice(wire);
          return { ...invoice, returned: returned.get(invoice.invoiceId) ?? 0 };
        });
      }),

    readCreditTakenBack: (customerId, subscriptionId) =>
      callStripe(async () => {
        let amount = 0;
        const all = stripe.customers.listBalanceTransactions(customerId, {
          limit: LOOKUP_COUNT_MAX,
        });
        try {
          for await (const each of all)
            if (each.metadata?.[TAKEN_BACK_OF] === subscriptionId) amount += each.amount;
        } catch (error) {
          // A customer who was deleted has no balance.
          if (!isMissing(error)) throw error;
        }
        return amount;
      }),

    takeBackCredit: ({ customerId, subscriptionId, credit }, key) =>
      callStripe(async () => {
        await stripe.customers.createBalanceTransaction(
          customerId,
          {
            // The balance is the customer's debt.
            amount: credit.amount,
            currency: credit.currency,
            description: 'Credit for unused time that was refunded',
            metadata: { [TAKEN_BACK_OF]: subscriptionId },
          },
          { idempotencyKey: key },
        );
        return null;
      }),
  };
}
