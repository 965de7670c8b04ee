/** Invoices of single purchases, as the payment provider's SDK has them. */
import type { Stripe } from 'stripe';
import { isMissing, LOOKUP_COUNT_MAX, pageOf, part } from './stripe-lists.ts';
import { toInvoice } from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import {
  STILL_PROCESSING,
  type PaymentProvider,
  type ProviderInvoice,
} from '../port/payment-provider.ts';

type Invoices = Pick<
  PaymentProvider,
  | 'createInvoice'
  | 'addLine'
  | 'finalizeInvoice'
  | 'payInvoice'
  | 'discardInvoice'
  | 'findInvoice'
  | 'findInvoiceOfRun'
  | 'listInvoices'
  | 'listOpenInvoices'
>;

export function createStripeInvoices(stripe: Stripe): Invoices {
  const findInvoice: PaymentProvider['findInvoice'] = (invoiceId) =>
    callStripe(async () => {
      try {
        return toInvoice(
          await stripe.invoices.retrieve(invoiceId, {
            expand: ['confirmation_secret', 'payments.data.payment.payment_intent'],
          }),
        );
      } catch (error) {
        if (isMissing(error)) return deletedInvoice(invoiceId);
        throw error;
      }
    });

  return {
    findInvoice,

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
              // The payment provider must never collect by itself: a purchase that ended stays ended.
              auto_advance: false,
              pending_invoice_items_behavior: 'exclude',
              // Without it the customer's discount would apply, and the purchase would be charged at a lower price.
              discounts: '',
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
      // One that the payment provider has given up collecting can still be paid.
      if (found.value.status !== 'open' && found.value.status !== 'uncollectible') return found;
      if (found.value.payment?.state === 'processing') return STILL_PROCESSING;
      return callStripe(async () =>
        toInvoice(await stripe.invoices.voidInvoice(invoiceId, undefined, { idempotencyKey: key })),
      );
    },

    listInvoices: (after) =>
      callStripe(async () => {
        const page = await stripe.invoices.list(part(after));
        for (const invoice of page.data) await completeLines(stripe, invoice);
        return pageOf(page, toInvoice);
      }),

    findInvoiceOfRun: (customerId, runId) =>
      callStripe(async () => {
        // Listing by customer is consistent at once; the payment provider's search lags.
        const { data } = await stripe.invoices.list({
          customer: customerId,
          limit: LOOKUP_COUNT_MAX,
        });
        const found = data.find((invoice) => invoice.metadata?.['run_id'] === runId);
        return found ? toInvoice(found) : null;
      }),
  };
}

/** An invoice shows its first ten lines. */
export async function completeLines(stripe: Stripe, invoice: Stripe.Invoice): Promise<void> {
  if (!invoice.lines.has_more || invoice.id === undefined) return;
  const lines: Stripe.InvoiceLineItem[] = [];
  for await (const line of stripe.invoices.listLineItems(invoice.id, { limit: LOOKUP_COUNT_MAX }))
    lines.push(line);
  invoice.lines.data = lines;
}

const deletedInvoice = (invoiceId: string): ProviderInvoice => ({
  invoiceId,
  customerId: '',
  status: 'deleted',
  total: { amount: 0, currency: '' },
  amountRemaining: 0,
  amountDue: 0,
  runId: null,
  accountId: null,
  lineCount: 0,
  subscriptionLines: [],
  withheld: 0,
  clientSecret: null,
  paymentPage: null,
  payment: null,
  subscriptionId: null,
});
