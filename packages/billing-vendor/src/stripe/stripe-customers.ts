/** Customers and their cards, as the payment provider's SDK has them. */
import { Stripe } from 'stripe';
import { LOOKUP_COUNT_MAX } from './stripe-lists.ts';
import { toCard, toCustomer } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import type {
  CustomerDetails,
  PaymentProvider,
  ProviderCustomer,
} from '../port/payment-provider.ts';

type Customers = Pick<
  PaymentProvider,
  | 'createCustomer'
  | 'findCustomer'
  | 'updateCustomer'
  | 'readCustomer'
  | 'findDefaultCard'
  | 'setDefaultCard'
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

    updateCustomer: (customerId, { name, email, address, taxId }, key) =>
      callStripe(async () => {
        await stripe.customers.update(
          customerId,
          { name, email, address: address ? addressToStripe(address) : '' },
          { idempotencyKey: key },
        );
        await replaceTaxId(stripe, customerId, taxId, key);
        return null;
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

const NO_CUSTOMER: ProviderCustomer = {
  taxExempt: 'none',
  creditAmount: 0,
  hasPaymentMethod: false,
};

/** Empty text unsets the earlier value; leaving it out would keep it. */
const addressToStripe = (address: NonNullable<CustomerDetails['address']>) => ({
  line1: address.line1,
  line2: address.line2 ?? '',
  city: address.city,
  state: address.state ?? '',
  postal_code: address.postalCode ?? '',
  country: address.country,
});

/**
 * The payment provider keeps tax ids beside the customer; they are made and removed, never changed. Two simultaneous
 * updates may both make one; each then keeps the oldest.
 */
async function replaceTaxId(
  stripe: Stripe,
  customer: string,
  taxId: CustomerDetails['taxId'],
  key: string,
): Promise<void> {
  const owner = { type: 'customer', customer } as const;
  const isWanted = ({ type, value }: { type: string; value: string }) =>
    type === taxId?.type && value === taxId.value;
  const listTaxIds = async () =>
    (await stripe.taxIds.list({ owner, limit: LOOKUP_COUNT_MAX })).data;
  if (taxId && !(await listTaxIds()).some(isWanted)) {
    const { type, value } = taxId;
    // Malformed, or of a type that the payment provider does not know: asking again would never succeed.
    await unlessRefused(
      stripe.taxIds.create({ owner, type, value }, { idempotencyKey: `${key}:tax_id` }),
    );
  }
  const there = await listTaxIds();
  const oldest = there.findLast(isWanted);
  for (const other of there.filter((each) => each !== oldest))
    await unlessRefused(stripe.taxIds.del(other.id));
}

async function unlessRefused(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
  }
}
