/**
 * Takes credit for unused time back from the customer's balance.
 *
 * That is necessary if the time's price was refunded after the credit was given. It takes at most the balance: the next
 * purchase does not pay for an old one. If the refund comes first, the change that gives the credit accounts for it
 * (`subscription-steps.ts`).
 *
 * It may run twice and at the same time: the key names the amount that was taken before, so one of two has the effect.
 */
import { excessCredit } from '@sluice/domain/billing/unused-time';
import type {
  PaymentProvider,
  ProviderInvoice,
} from '@sluice/billing-vendor/port/payment-provider';

/** @returns false if it has to be tried again. */
export async function takeBackExcessCredit(
  provider: PaymentProvider,
  { customerId, subscriptionId, total }: ProviderInvoice,
): Promise<boolean> {
  if (subscriptionId === null) return true;
  const invoices = await provider.listInvoicesOfSubscription(customerId, subscriptionId);
  if (invoices.outcome !== 'ok') return invoices.outcome !== 'unknown';
  const excess = excessCredit(invoices.value).amount;
  if (excess === 0) return true;
  const taken = await provider.readCreditTakenBack(customerId, subscriptionId);
  if (taken.outcome !== 'ok') return taken.outcome !== 'unknown';
  const customer = await provider.readCustomer(customerId);
  if (customer.outcome !== 'ok') return customer.outcome !== 'unknown';
  const amount = Math.min(excess - taken.value, customer.value.creditAmount);
  if (amount <= 0) return true;
  const took = await provider.takeBackCredit(
    { customerId, subscriptionId, credit: { amount, currency: total.currency } },
    `${subscriptionId}:taken_back:${taken.value}`,
  );
  return took.outcome !== 'unknown';
}
