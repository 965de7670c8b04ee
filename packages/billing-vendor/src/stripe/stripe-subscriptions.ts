/** Subscriptions, as the payment provider's SDK has them. A change is paid for at once or does not happen. */
import type { Stripe } from 'stripe';
import { isMissing, LOOKUP_COUNT_MAX, pageOf, part } from './stripe-lists.ts';
import {
  idOf,
  toInvoice,
  toSubscription,
  toSubscriptionLine,
  WITHHELD,
  withInvoiceOf,
} from './stripe-objects.ts';
import { callStripe } from './stripe-outcome.ts';
import type { PaymentProvider, SubscriptionChange } from '../port/payment-provider.ts';

type Subscriptions = Pick<
  PaymentProvider,
  | 'createSubscription'
  | 'changeSubscription'
  | 'cancelSubscription'
  | 'previewChange'
  | 'findSubscription'
  | 'findSubscriptionOfRun'
  | 'readSubscription'
  | 'listSubscriptions'
  | 'isCouponValid'
>;

export function createStripeSubscriptions(stripe: Stripe): Subscriptions {
  return {
    listSubscriptions: (after) =>
      callStripe(async () =>
        pageOf(
          await stripe.subscriptions.list({ ...part(after), expand: ['data.latest_invoice'] }),
          toSubscription,
        ),
      ),

    createSubscription: ({ customerId, priceId, quantity, couponCode, runId }, key) =>
      callStripe(async () => {
        const made = await stripe.subscriptions.create(
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
        );
        return withInvoiceOf(runId, made, made.latest_invoice);
      }),

    changeSubscription: (subscriptionId, change, key) =>
      callStripe(async () => {
        const withheld = await withheldLine(stripe, change);
        const changed = await stripe.subscriptions.update(
          subscriptionId,
          {
            items: itemsOf(change),
            proration_behavior: 'always_invoice',
            payment_behavior: 'error_if_incomplete',
            proration_date: Math.floor(change.prorationAtMs / 1_000),
            ...(withheld && { add_invoice_items: [withheld] }),
            off_session: true,
            ...(change.couponCode !== null && { discounts: [{ coupon: change.couponCode }] }),
            metadata: { run_id: change.runId },
            expand: ['latest_invoice'],
          },
          { idempotencyKey: key },
        );
        return withInvoiceOf(change.runId, changed, changed.latest_invoice);
      }),

    cancelSubscription: (subscriptionId, key) =>
      callStripe(async () => {
        try {
          await stripe.subscriptions.cancel(subscriptionId, {}, { idempotencyKey: key });
        } catch (error) {
          // To be ended, one that has ended is not there.
          if (!isMissing(error)) throw error;
        }
        return null;
      }),

    previewChange: (subscriptionId, change) =>
      callStripe(async () => {
        const withheld = await withheldLine(stripe, change);
        const preview = await stripe.invoices.createPreview({
          subscription: subscriptionId,
          subscription_details: {
            items: itemsOf(change),
            proration_behavior: 'always_invoice',
            proration_date: Math.floor(change.prorationAtMs / 1_000),
          },
          ...(withheld && { invoice_items: [withheld] }),
          ...(change.couponCode !== null && { discounts: [{ coupon: change.couponCode }] }),
        });
        return {
          amount: Math.max(0, preview.total),
          currency: preview.currency,
          subscriptionLines: preview.lines.data.flatMap((line) => toSubscriptionLine(line)),
        };
      }),

    findSubscription: (customerId) =>
      callStripe(async () => {
        const { data } = await stripe.subscriptions.list({
          customer: customerId,
          limit: LOOKUP_COUNT_MAX,
          expand: ['data.latest_invoice'],
        });
        const [found] = data
          .filter(({ status }) => !ENDED.has(status))
          .toSorted((one, other) => rankOf(one.status) - rankOf(other.status));
        return found ? toSubscription(found) : null;
      }),

    findSubscriptionOfRun: (customerId, runId) =>
      callStripe(async () => {
        const { data: subscriptions } = await stripe.subscriptions.list({
          customer: customerId,
          status: 'all',
          limit: LOOKUP_COUNT_MAX,
        });
        for (const subscription of subscriptions) {
          const { data: invoices } = await stripe.invoices.list({
            subscription: subscription.id,
            limit: LOOKUP_COUNT_MAX,
          });
          // The first one: later ones of the same run would be about a change without an invoice of its own.
          const invoice = invoices.findLast((each) => toInvoice(each).runId === runId);
          const hasItem = subscription.items.data.some((item) => item.metadata['run_id'] === runId);
          // Either may be missing: an item can be taken away, and not every change is invoiced.
          if (hasItem || invoice?.status === 'paid')
            return withInvoiceOf(runId, subscription, invoice);
        }
        return null;
      }),

    isCouponValid: (code) =>
      callStripe(async () => {
        try {
          return (await stripe.coupons.retrieve(code)).valid;
        } catch (error) {
          if (isMissing(error)) return false;
          throw error;
        }
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
  };
}

/** The product is the new price's: with an inline price the payment provider asks for one. */
async function withheldLine(stripe: Stripe, { items, withheld = 0 }: SubscriptionChange) {
  if (withheld === 0) return undefined;
  const price = await stripe.prices.retrieve(items[0]?.priceId ?? '');
  return {
    price_data: {
      currency: price.currency,
      product: idOf(price.product) ?? '',
      unit_amount: withheld,
    },
    discountable: false,
    metadata: WITHHELD,
  };
}

const ENDED: ReadonlySet<string> = new Set(['canceled', 'incomplete_expired']);

/** One in force before one that is not, then the newest. We make only one, but somebody may make another by hand. */
const IN_FORCE = ['active', 'trialing', 'past_due'];
const rankOf = (status: string): number => {
  const rank = IN_FORCE.indexOf(status);
  return rank < 0 ? IN_FORCE.length : rank;
};

const itemsOf = (change: SubscriptionChange) =>
  change.items.map(({ priceId, itemId, quantity }) => ({
    ...(itemId !== undefined && { id: itemId }),
    price: priceId,
    quantity,
    metadata: { run_id: change.runId },
  }));
