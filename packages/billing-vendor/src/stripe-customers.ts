/** Customers and their cards, as the vendor's SDK has them. */
import type { Stripe } from 'stripe';
import { LOOKUP_COUNT_MAX } from './stripe-lists.ts';
import { toCard, toCustomer } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import type { Vendor, VendorCustomer } from './vendor.ts';

type Customers = Pick<
  Vendor,
  'createCustomer' | 'findCustomer' | 'readCustomer' | 'findDefaultCard' | 'setDefaultCard'
>;

export function createStripeCustomers(stripe: Stripe): Customers {
  return {
    createCustomer: ({ accountId, name, email }, key) =>
      callStripe(async () => {
        const metadata = { account_id: String(accountId) };
        const customer = await stripe.customers.create(
          { name, email, metadata },
          { idempotencyKey: key },
        );
        return customer.id;
      }),

    findCustomer: (accountId, email) =>
      callStripe(async () => {
        const { data } = await stripe.customers.list({ email, limit: LOOKUP_COUNT_MAX });
        const found = data.find(
          (customer) => customer.metadata['account_id'] === String(accountId),
        );
        return found?.id ?? null;
      }),

    readCustomer: (customerId) =>
      callStripe(async () => {
        const customer = await stripe.customers.retrieve(customerId);
        return customer.deleted === true ? NO_CUSTOMER : toCustomer(customer);
      }),

    findDefaultCard: (customerId) =>
      callStripe(async () => {
        const customer = await stripe.customers.retrieve(customerId);
        if (customer.deleted === true) return null;
        const method = customer.invoice_settings.default_payment_method;
        if (method === null || method === undefined) return null;
        return toCard(
          typeof method === 'string' ? await stripe.paymentMethods.retrieve(method) : method,
        );
      }),

    setDefaultCard: (customerId, paymentMethodId) =>
      callStripe(async () => {
        const attached = await stripe.paymentMethods.attach(paymentMethodId, {
          customer: customerId,
        });
        await stripe.customers.update(customerId, {
          invoice_settings: { default_payment_method: attached.id },
        });
        return null;
      }),
  };
}

const NO_CUSTOMER: VendorCustomer = {
  taxExempt: 'none',
  credit: { amount: 0, currency: 'usd' },
};
