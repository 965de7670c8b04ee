/** The steps of a purchase that changes a subscription: add-ons, and the checkout of a plan. */
import { decideAddons, unknownAddons } from '@sluice/domain/billing/addon-decision';
import { findCoupon, type Catalogue } from '@sluice/domain/billing/catalogue';
import type { CheckoutRefusal } from '@sluice/domain/billing/decline-message';
import { discountedAmount, isSameMoney, type Money } from '@sluice/domain/values/money';
import type { PurchaseContent } from '@sluice/domain/billing/purchase-content';
import { debtOf } from '@sluice/domain/billing/subscription-status';
import { withheldCredit } from '@sluice/domain/billing/unused-time';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type {
  SubscriptionChange,
  PaymentProvider,
  ProviderResult,
  ProviderSubscription,
} from '@sluice/billing-vendor/port/payment-provider';
import {
  addonsOf,
  checkoutOf,
  customerOf,
  mapResult,
  ok,
  type Step,
  type StepContext,
  type StepInput,
  type StepOutput,
  type StepResult,
} from '../settlement/purchase-step.ts';

export const SUBSCRIPTION_STEPS = {
  inspect: {
    async perform({ provider, catalogue, workflow, known, boughtAddons }) {
      const found = await provider.findSubscription(customerOf(known));
      return mapResult(found, (subscription) => {
        if (!subscription) return { subscriptionId: null };
        const held = new Set(subscription.items.map((item) => item.priceId));
        const skus = addonsOf(workflow.content).skus;
        const { interval, subscriptionId } = subscription;
        const decision = decideAddons(catalogue, held, boughtAddons, interval, skus);
        if (decision.outcome !== 'add') return { subscriptionId, decision };
        const refusal =
          debtOfSubscription(subscription) ??
          (unknownAddons(catalogue, held, boughtAddons).length > 0
            ? 'unknown_addon_held'
            : undefined);
        return { subscriptionId, ...(refusal === undefined ? { decision } : { refusal }) };
      });
    },
    // It only reads, so it cannot have had an effect.
    lookUp: () => Promise.resolve(ok(null)),
  },

  apply: {
    prepare: ({ nowMs }) => Promise.resolve(ok({ prorationAtMs: nowMs })),
    async perform({ provider, workflow, known, input, key }) {
      const changed = await provider.changeSubscription(
        known.subscriptionId ?? '',
        addonChange(workflow.runId, known, input),
        key,
      );
      return mapResult(changed, describeAddons);
    },
    async lookUp({ provider, workflow, known }) {
      const found = await provider.findSubscriptionOfRun(customerOf(known), workflow.runId);
      return mapResult(found, (subscription) => subscription && describeAddons(subscription));
    },
  },

  subscribe: {
    async prepare({ provider, catalogue, workflow, known, boughtPlanPriceIds, nowMs }) {
      const found = await provider.findSubscription(customerOf(known));
      if (found.outcome !== 'ok') return found;
      const debt = found.value && debtOfSubscription(found.value);
      if (debt) return refuse(debt);
      // The catalogue may have given a plan another price since: a subscription at the old price is still that plan.
      const prices = new Set([
        ...catalogue.plans.map((plan) => plan.priceId),
        ...boughtPlanPriceIds,
      ]);
      const items = found.value?.items ?? [];
      const item = items.find((each) => prices.has(each.priceId));
      const addons = new Set(catalogue.addons.map((addon) => addon.sku));
      // Perhaps a plan that somebody made at the payment provider: both would be charged from now on.
      if (!item && items.some((each) => !addons.has(each.priceId)))
        return refuse('unknown_subscription_item');
      const { plan, paymentMethodId, expectedAmount } = checkoutOf(workflow.content);
      // The payment provider takes one cycle a subscription; its own refusal would read as one of the card.
      const hasAddons = items.some((each) => !prices.has(each.priceId));
      if (hasAddons && found.value?.interval !== plan.interval)
        return refuse('addons_of_other_cycle');
      const card =
        paymentMethodId === null ? ok(null) : await provider.findDefaultCard(customerOf(known));
      if (card.outcome !== 'ok') return card;
      const asked = {
        subscriptionId: found.value?.subscriptionId ?? null,
        itemId: item?.itemId ?? null,
        earlierPaymentMethodId: card.value?.paymentMethodId ?? null,
        prorationAtMs: nowMs,
      };
      const withheld = await readWithheldCredit(provider, workflow, customerOf(known), asked);
      if (withheld.outcome !== 'ok') return withheld;
      const input = { ...asked, ...(withheld.value > 0 && { withheld: withheld.value }) };
      if (!expectedAmount) return ok(input);
      const amount = await amountOf({ provider, catalogue, workflow }, input, nowMs);
      return mapResult(amount, (value) => ({ ...input, amount: value }));
    },
    async perform({ provider, catalogue, workflow, known, input, key }) {
      const { plan, quantity, couponCode, paymentMethodId, expectedAmount } = checkoutOf(
        workflow.content,
      );
      if (expectedAmount && !isSameMoney(expectedAmount, input.amount ?? null))
        return refuse('amount_changed');
      const customerId = customerOf(known);
      if (paymentMethodId !== null) {
        const set = await provider.setDefaultCard(customerId, paymentMethodId);
        if (set.outcome !== 'ok') return set;
      }
      const { runId } = workflow;
      const { subscriptionId = null } = input;
      const { earlierPaymentMethodId = null } = input;
      const subscribed =
        subscriptionId === null
          ? await provider.createSubscription(
              { customerId, priceId: plan.priceId, quantity, couponCode, runId },
              key,
            )
          : await provider.changeSubscription(subscriptionId, planChange(workflow, input), key);
      const isOver = subscribed.outcome === 'declined' || subscribed.outcome === 'refused';
      if (isOver && paymentMethodId !== null && earlierPaymentMethodId !== null) {
        const put = await putBack(provider, customerId, earlierPaymentMethodId);
        if (put.outcome !== 'ok') return put;
        if (put.value) return subscribed;
      }
      const result = mapResult(subscribed, (each) =>
        describeCheckout(catalogue, workflow.content, input, each),
      );
      return withCard(result, paymentMethodId);
    },
    async lookUp({ provider, catalogue, workflow, known, input }) {
      const customerId = customerOf(known);
      const found = await provider.findSubscriptionOfRun(customerId, workflow.runId);
      const result = mapResult(
        found,
        (subscription) =>
          subscription && describeCheckout(catalogue, workflow.content, input, subscription),
      );
      const { paymentMethodId } = checkoutOf(workflow.content);
      if (result.outcome !== 'ok' || paymentMethodId === null) return result;
      // It is subscribed to after its card was set, never before.
      if (result.value) return withCard(result, paymentMethodId);
      // Not subscribed, but the card may be set: the next attempt must find the one from before it.
      const { earlierPaymentMethodId = null } = input;
      if (earlierPaymentMethodId !== null) {
        const put = await putBack(provider, customerId, earlierPaymentMethodId);
        if (put.outcome !== 'ok') return put;
        return put.value ? result : withCard(result, paymentMethodId);
      }
      const card = await provider.findDefaultCard(customerId);
      if (card.outcome !== 'ok') return card;
      return card.value ? withCard(result, paymentMethodId) : result;
    },
  },
} satisfies Record<string, Step>;

const debtOfSubscription = ({ status, latestInvoiceStatus }: ProviderSubscription) =>
  debtOf(status, latestInvoiceStatus);

const refuse = (code: CheckoutRefusal) => ({ outcome: 'refused', code }) as const;

/**
 * Otherwise the next renewal would charge the card that was refused.
 *
 * @returns false if the payment provider no longer takes the earlier card.
 */
async function putBack(
  provider: PaymentProvider,
  customerId: string,
  earlierPaymentMethodId: string,
): Promise<ProviderResult<boolean> & { readonly outcome: 'ok' | 'unknown' }> {
  const put = await provider.setDefaultCard(customerId, earlierPaymentMethodId);
  return put.outcome === 'unknown' ? put : { outcome: 'ok', value: put.outcome === 'ok' };
}

const withCard = <Value>(
  result: ProviderResult<Value>,
  paymentMethodId: string | null,
): StepResult<Value> =>
  paymentMethodId === null ? result : { ...result, cardOnFile: paymentMethodId };

function addonChange(runId: string, known: StepOutput, input: StepInput): SubscriptionChange {
  const skus = known.decision?.outcome === 'add' ? known.decision.skus : [];
  return {
    items: skus.map((priceId) => ({ priceId, quantity: 1 })),
    couponCode: null,
    prorationAtMs: input.prorationAtMs ?? 0,
    runId,
  };
}

function planChange({ content, runId }: PurchaseWorkflow, input: StepInput): SubscriptionChange {
  const { plan, quantity, couponCode } = checkoutOf(content);
  const item = input.itemId == null ? {} : { itemId: input.itemId };
  return {
    items: [{ priceId: plan.priceId, quantity, ...item }],
    couponCode,
    prorationAtMs: input.prorationAtMs ?? 0,
    ...(input.withheld !== undefined && { withheld: input.withheld }),
    runId,
  };
}

/** Of the credit that the change of a plan gives for unused time, the part that was refunded before. */
async function readWithheldCredit(
  provider: PaymentProvider,
  workflow: PurchaseWorkflow,
  customerId: string,
  input: StepInput,
): Promise<ProviderResult<number>> {
  const { subscriptionId = null, itemId = null } = input;
  // Only a change of an item gives credit.
  if (subscriptionId === null || itemId === null) return ok(0);
  const invoices = await provider.listInvoicesOfSubscription(customerId, subscriptionId);
  if (invoices.outcome !== 'ok') return invoices;
  if (invoices.value.every(({ returned }) => returned === 0)) return ok(0);
  const takenBack = await provider.readCreditTakenBack(customerId, subscriptionId);
  if (takenBack.outcome !== 'ok') return takenBack;
  const preview = await provider.previewChange(subscriptionId, planChange(workflow, input));
  return mapResult(preview, ({ subscriptionLines }) =>
    withheldCredit(invoices.value, takenBack.value, subscriptionLines),
  );
}

/** The amount that a checkout would charge now. */
async function amountOf(
  { provider, catalogue, workflow }: Pick<StepContext, 'provider' | 'catalogue' | 'workflow'>,
  input: StepInput,
  nowMs: number,
): Promise<ProviderResult<Money>> {
  const { plan, quantity, couponCode } = checkoutOf(workflow.content);
  if (input.subscriptionId != null)
    return mapResult(
      await provider.previewChange(input.subscriptionId, planChange(workflow, input)),
      ({ amount, currency }) => ({ amount, currency }),
    );
  const coupon = couponCode === null ? null : (findCoupon(catalogue, couponCode, nowMs) ?? null);
  const amount = discountedAmount(plan.amount * quantity, coupon);
  return ok({ amount, currency: catalogue.currency });
}

/** A bank pays days after the payment provider has changed the subscription. */
function chargeOf(subscription: ProviderSubscription): Pick<StepOutput, 'charged' | 'due'> {
  const { latestInvoiceTotal: total, latestInvoiceStatus: status } = subscription;
  return total === null || status === 'paid' ? { charged: total } : { charged: null, due: total };
}

const describeAddons = (subscription: ProviderSubscription): StepOutput => ({
  ...chargeOf(subscription),
  ...(subscription.latestInvoiceId !== null && { invoiceId: subscription.latestInvoiceId }),
});

function describeCheckout(
  { currency }: Catalogue,
  content: PurchaseContent,
  input: StepInput,
  subscription: ProviderSubscription,
): StepOutput {
  const { plan, quantity, couponCode } = checkoutOf(content);
  return {
    ...chargeOf(subscription),
    subscription: {
      id: subscription.subscriptionId,
      isNew: input.subscriptionId === null,
      planId: plan.id,
      status: subscription.status,
      quantity,
      couponCode,
      currentPeriodStartMs: subscription.currentPeriodStartMs,
      currentPeriodEndMs: subscription.currentPeriodEndMs,
      amount: subscription.latestInvoiceTotal ?? { amount: 0, currency },
      latestInvoiceId: subscription.latestInvoiceId,
    },
  };
}
