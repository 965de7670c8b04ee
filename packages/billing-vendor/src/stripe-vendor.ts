/**
 * The vendor port over the vendor's official SDK. It never lets the SDK repeat a request on its own
 * account (`maxNetworkRetries: 0`): whether and with which key a call is repeated is the workflow's to
 * say. The SDK resends once on a socket that closed; that is the same key again, which is harmless.
 */
import { Stripe } from 'stripe';
import { toCard, toCustomer, toInvoice, toSubscription } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import type {
  SubscriptionChange,
  Vendor,
  VendorCustomer,
  VendorInvoice,
  VendorPage,
} from './vendor.ts';

export interface StripeOptions {
  readonly secretKey: string;
  /** Of the simulator. Absent: the vendor itself. */
  readonly baseUrl?: string | undefined;
  readonly timeoutMs: number;
}

const LOOKUP_COUNT_MAX = 100;

export function openStripeClient(options: StripeOptions): Stripe {
  const base = options.baseUrl === undefined ? undefined : new URL(options.baseUrl);
  return new Stripe(options.secretKey, {
    maxNetworkRetries: 0,
    timeout: options.timeoutMs,
    telemetry: false,
    ...(base && {
      host: base.hostname,
      port: base.port === '' ? (base.protocol === 'https:' ? 443 : 80) : Number(base.port),
      protocol: base.protocol === 'https:' ? 'https' : 'http',
    }),
  });
}

export function createStripeVendor(stripe: Stripe): Vendor {
  const findInvoice: Vendor['findInvoice'] = (invoiceId) =>
    callStripe(async () => {
      try {
        return toInvoice(
          await stripe.invoices.retrieve(invoiceId, { expand: ['confirmation_secret'] }),
        );
      } catch (error) {
        if (isMissing(error)) return deletedInvoice(invoiceId);
        throw error;
      }
    });

  return {
    findInvoice,

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

    listOpenInvoices: (customerId) =>
      callStripe(async () => {
        const open = { customer: customerId, status: 'open', limit: LOOKUP_COUNT_MAX } as const;
        return (await stripe.invoices.list(open)).data.map(toInvoice);
      }),

    createInvoice: ({ customerId, accountId, runId, currency }, key) =>
      callStripe(async () =>
        toInvoice(
          await stripe.invoices.create(
            {
              customer: customerId,
              currency,
              collection_method: 'charge_automatically',
              // The vendor must never collect by itself: a purchase that ended stays ended.
              auto_advance: false,
              pending_invoice_items_behavior: 'exclude',
              metadata: { run_id: runId, account_id: String(accountId) },
            },
            { idempotencyKey: key },
          ),
        ),
      ),

    addLine: ({ customerId, invoiceId, price, description, runId }, key) =>
      callStripe(async () => {
        await stripe.invoiceItems.create(
          {
            customer: customerId,
            invoice: invoiceId,
            amount: price.amount,
            currency: price.currency,
            description,
            metadata: { run_id: runId },
          },
          { idempotencyKey: key },
        );
        return null;
      }),

    finalizeInvoice: (invoiceId, key) =>
      callStripe(async () =>
        toInvoice(
          await stripe.invoices.finalizeInvoice(
            invoiceId,
            { auto_advance: false, expand: ['confirmation_secret'] },
            { idempotencyKey: key },
          ),
        ),
      ),

    payInvoice: (invoiceId, key) =>
      callStripe(async () =>
        toInvoice(
          await stripe.invoices.pay(invoiceId, { off_session: true }, { idempotencyKey: key }),
        ),
      ),

    async discardInvoice(invoiceId, key) {
      const found = await findInvoice(invoiceId);
      if (found.outcome !== 'ok') return found;
      if (found.value.status === 'draft')
        return callStripe(async () => {
          await stripe.invoices.del(invoiceId, undefined, { idempotencyKey: `${key}:delete` });
          return deletedInvoice(invoiceId);
        });
      if (found.value.status !== 'open') return found;
      return callStripe(async () =>
        toInvoice(await stripe.invoices.voidInvoice(invoiceId, undefined, { idempotencyKey: key })),
      );
    },

    listInvoices: (after) =>
      callStripe(async () => pageOf(await stripe.invoices.list(part(after)), toInvoice)),

    listSubscriptions: (after) =>
      callStripe(async () =>
        pageOf(
          await stripe.subscriptions.list({ ...part(after), expand: ['data.latest_invoice'] }),
          toSubscription,
        ),
      ),

    findInvoiceOfRun: (customerId, runId) =>
      callStripe(async () => {
        // Listing by customer is consistent at once; the vendor's search lags.
        const { data } = await stripe.invoices.list({
          customer: customerId,
          limit: LOOKUP_COUNT_MAX,
        });
        const found = data.find((invoice) => invoice.metadata?.['run_id'] === runId);
        return found ? toInvoice(found) : null;
      }),

    createSubscription: ({ customerId, priceId, quantity, couponCode, runId }, key) =>
      callStripe(async () =>
        toSubscription(
          await stripe.subscriptions.create(
            {
              customer: customerId,
              items: [{ price: priceId, quantity, metadata: { run_id: runId } }],
              payment_behavior: 'error_if_incomplete',
              off_session: true,
              ...(couponCode !== null && { discounts: [{ coupon: couponCode }] }),
              metadata: { run_id: runId },
              expand: ['latest_invoice'],
            },
            { idempotencyKey: key },
          ),
        ),
      ),

    changeSubscription: (subscriptionId, change, key) =>
      callStripe(async () =>
        toSubscription(
          await stripe.subscriptions.update(
            subscriptionId,
            {
              items: itemsOf(change),
              proration_behavior: 'always_invoice',
              payment_behavior: 'error_if_incomplete',
              proration_date: Math.floor(change.prorationAtMs / 1_000),
              off_session: true,
              ...(change.couponCode !== null && { discounts: [{ coupon: change.couponCode }] }),
              ...(change.isPlanChange && { metadata: { run_id: change.runId } }),
              expand: ['latest_invoice'],
            },
            { idempotencyKey: key },
          ),
        ),
      ),

    previewChange: (subscriptionId, change) =>
      callStripe(async () => {
        const preview = await stripe.invoices.createPreview({
          subscription: subscriptionId,
          subscription_details: {
            items: itemsOf(change),
            proration_behavior: 'always_invoice',
            proration_date: Math.floor(change.prorationAtMs / 1_000),
          },
          ...(change.couponCode !== null && { discounts: [{ coupon: change.couponCode }] }),
        });
        return { amount: preview.total, currency: preview.currency };
      }),

    findSubscription: (customerId) =>
      callStripe(async () => {
        const { data } = await stripe.subscriptions.list({
          customer: customerId,
          limit: LOOKUP_COUNT_MAX,
          expand: ['data.latest_invoice'],
        });
        const found = data.find((subscription) => subscription.status !== 'canceled');
        return found ? toSubscription(found) : null;
      }),

    readSubscription: (subscriptionId) =>
      callStripe(async () => {
        try {
          return toSubscription(
            await stripe.subscriptions.retrieve(subscriptionId, { expand: ['latest_invoice'] }),
          );
        } catch (error) {
          if (isMissing(error)) return null;
          throw error;
        }
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

const part = (after: string | undefined) => ({
  limit: LOOKUP_COUNT_MAX,
  ...(after !== undefined && { starting_after: after }),
});

function pageOf<Wire extends { id?: string }, Item>(
  list: { readonly data: readonly Wire[]; readonly has_more: boolean },
  toItem: (wire: Wire) => Item,
): VendorPage<Item> {
  const next = list.has_more ? list.data.at(-1)?.id : undefined;
  return { items: list.data.map((each) => toItem(each)), ...(next !== undefined && { next }) };
}

const itemsOf = (change: SubscriptionChange) =>
  change.items.map(({ priceId, itemId, quantity }) => ({
    ...(itemId !== undefined && { id: itemId }),
    price: priceId,
    quantity,
    metadata: { run_id: change.runId },
  }));

const isMissing = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing';

const deletedInvoice = (invoiceId: string): VendorInvoice => ({
  invoiceId,
  customerId: '',
  status: 'deleted',
  total: { amount: 0, currency: '' },
  runId: null,
  accountId: null,
  lineCount: 0,
  clientSecret: null,
  subscriptionId: null,
});
