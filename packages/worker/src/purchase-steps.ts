/**
 * The steps of a run, one entry each: what is fixed before the vendor is asked (`prepare`), the asking
 * (`perform`), and how to find out what an earlier asking did (`lookUp`). Which step comes when is
 * `domain/src/run-workflow.ts`'s to say; `advance-run.ts` calls these.
 *
 * `lookUp` answers null only where the step provably had no effect.
 */
import { decideAddons, type AddonDecision } from '@sluice/domain/addon-decision';
import { findCoupon, type Catalogue } from '@sluice/domain/catalogue';
import { AppError } from '@sluice/domain/errors';
import { discountedAmount, isSameMoney, type Money } from '@sluice/domain/money';
import type { BoughtSubscription, RunContent } from '@sluice/domain/run-content';
import type { StepName } from '@sluice/domain/run-workflow';
import type { Run } from '@sluice/database/runs';
import type {
  InvoiceStatus,
  SubscriptionChange,
  Vendor,
  VendorInvoice,
  VendorResult,
  VendorSubscription,
} from '@sluice/billing-vendor/vendor';

/** What a step leaves for the steps after it. */
export interface StepOutput {
  readonly customerId?: string;
  readonly invoiceId?: string;
  readonly invoiceStatus?: InvoiceStatus;
  readonly clientSecret?: string | null;
  readonly total?: Money;
  readonly decision?: AddonDecision;
  readonly subscriptionId?: string | null;
  readonly charged?: Money | null;
  readonly subscription?: BoughtSubscription;
}

/** Fixed with the intent. */
export interface StepInput {
  readonly prorationAtMs?: number;
  readonly subscriptionId?: string | null;
  readonly itemId?: string | null;
  /** What a checkout will charge, where its customer was shown an amount. */
  readonly amount?: Money;
}

export interface StepContext {
  readonly vendor: Vendor;
  readonly catalogue: Catalogue;
  readonly run: Run;
  /** Of all steps that are done, together. */
  readonly known: StepOutput;
  readonly input: StepInput;
  /** Of this attempt. */
  readonly key: string;
  /** The account's customer, where it has one. */
  readonly existingCustomerId: string | undefined;
  readonly nowMs: number;
}

/** Why a checkout is refused: our word beside the vendor's codes. */
export const AMOUNT_CHANGED = 'amount_changed';

interface Step {
  readonly prepare?: (context: Omit<StepContext, 'input'>) => Promise<VendorResult<StepInput>>;
  readonly perform: (context: StepContext) => Promise<VendorResult<StepOutput>>;
  readonly lookUp: (context: StepContext) => Promise<VendorResult<StepOutput | null>>;
}

export const STEPS: Readonly<Record<StepName, Step>> = {
  customer: {
    async perform({ vendor, run, existingCustomerId, key }) {
      if (existingCustomerId !== undefined) return ok({ customerId: existingCustomerId });
      const created = await vendor.createCustomer(
        { accountId: run.accountId, ...run.content.contact },
        key,
      );
      return map(created, (customerId) => ({ customerId }));
    },
    async lookUp({ vendor, run }) {
      const found = await vendor.findCustomer(run.accountId, run.content.contact.email);
      return map(found, (customerId) => (customerId === null ? null : { customerId }));
    },
  },

  invoice: {
    async perform({ vendor, run, known, key }) {
      const { currency } = purchaseOf(run).price;
      const { accountId, runId } = run;
      return map(
        await vendor.createInvoice(
          { customerId: customerOf(known), accountId, runId, currency },
          key,
        ),
        describeInvoice,
      );
    },
    async lookUp({ vendor, run, known }) {
      const found = await vendor.findInvoiceOfRun(customerOf(known), run.runId);
      return map(found, (invoice) => invoice && describeInvoice(invoice));
    },
  },

  line: {
    async perform({ vendor, run, known, key }) {
      const purchase = purchaseOf(run);
      const what =
        purchase.kind === 'inbox_previews' ? 'inbox previews' : `${purchase.kind} credits`;
      const added = await vendor.addLine(
        {
          customerId: customerOf(known),
          invoiceId: invoiceOf(known),
          price: purchase.price,
          description: `${purchase.quantity} ${what}`,
          runId: run.runId,
        },
        key,
      );
      return map(added, () => ({}));
    },
    lookUp: lookUpInvoice((invoice) => invoice.lineCount > 0),
  },

  finalize: {
    async perform({ vendor, known, key }) {
      return map(await vendor.finalizeInvoice(invoiceOf(known), key), describeInvoice);
    },
    lookUp: lookUpInvoice((invoice) => invoice.status === 'open' || invoice.status === 'paid'),
  },

  pay: {
    async perform({ vendor, known, key }) {
      return map(await vendor.payInvoice(invoiceOf(known), key), describeInvoice);
    },
    lookUp: lookUpInvoice((invoice) => invoice.status === 'paid'),
  },

  void: {
    async perform({ vendor, known, key }) {
      return map(await vendor.discardInvoice(invoiceOf(known), key), describeInvoice);
    },
    lookUp: lookUpInvoice((invoice) => invoice.status !== 'draft' && invoice.status !== 'open'),
  },

  inspect: {
    async perform({ vendor, catalogue, run, known }) {
      const found = await vendor.findSubscription(customerOf(known));
      return map(found, (subscription) => {
        if (!subscription) return { subscriptionId: null };
        const held = new Set(subscription.items.map((item) => item.priceId));
        const skus = addonsOf(run.content).skus;
        return {
          subscriptionId: subscription.subscriptionId,
          decision: decideAddons(catalogue, held, subscription.interval, skus),
        };
      });
    },
    // It only reads, so there is nothing that it can have done.
    lookUp: () => Promise.resolve(ok(null)),
  },

  apply: {
    prepare: ({ nowMs }) => Promise.resolve(ok({ prorationAtMs: nowMs })),
    async perform({ vendor, run, known, input, key }) {
      const changed = await vendor.changeSubscription(
        known.subscriptionId ?? '',
        addonChange(run.runId, known, input),
        key,
      );
      return map(changed, describeAddons);
    },
    async lookUp({ vendor, run, known }) {
      const found = await vendor.findSubscription(customerOf(known));
      return map(found, (subscription) =>
        subscription && subscription.items.some((item) => item.runId === run.runId)
          ? describeAddons(subscription)
          : null,
      );
    },
  },

  subscribe: {
    async prepare({ vendor, catalogue, run, known, nowMs }) {
      const found = await vendor.findSubscription(customerOf(known));
      if (found.outcome !== 'ok') return found;
      const prices = new Set(catalogue.plans.map((plan) => plan.priceId));
      const item = found.value?.items.find((each) => prices.has(each.priceId));
      const input = {
        subscriptionId: found.value?.subscriptionId ?? null,
        itemId: item?.itemId ?? null,
        prorationAtMs: nowMs,
      };
      if (!checkoutOf(run.content).expectedAmount) return ok(input);
      const amount = await amountOf({ vendor, catalogue, run }, input, nowMs);
      return map(amount, (value) => ({ ...input, amount: value }));
    },
    async perform({ vendor, run, known, input, key }) {
      const { plan, quantity, couponCode, paymentMethodId, expectedAmount } = checkoutOf(
        run.content,
      );
      if (expectedAmount && !isSameMoney(expectedAmount, input.amount ?? null))
        return { outcome: 'refused', code: AMOUNT_CHANGED };
      const customerId = customerOf(known);
      if (paymentMethodId !== null) {
        const set = await vendor.setDefaultCard(customerId, paymentMethodId);
        if (set.outcome !== 'ok') return set;
      }
      const { runId } = run;
      const { subscriptionId = null } = input;
      const subscribed =
        subscriptionId === null
          ? await vendor.createSubscription(
              { customerId, priceId: plan.priceId, quantity, couponCode, runId },
              key,
            )
          : await vendor.changeSubscription(subscriptionId, planChange(run, input), key);
      return map(subscribed, (subscription) => describeCheckout(run.content, subscription));
    },
    async lookUp({ vendor, run, known }) {
      const found = await vendor.findSubscription(customerOf(known));
      return map(found, (subscription) =>
        subscription?.runId === run.runId ? describeCheckout(run.content, subscription) : null,
      );
    },
  },
};

function addonChange(runId: string, known: StepOutput, input: StepInput): SubscriptionChange {
  const skus = known.decision?.outcome === 'add' ? known.decision.skus : [];
  return {
    items: skus.map((priceId) => ({ priceId, quantity: 1 })),
    couponCode: null,
    prorationAtMs: input.prorationAtMs ?? 0,
    runId,
    isPlanChange: false,
  };
}

function planChange({ content, runId }: Run, input: StepInput): SubscriptionChange {
  const { plan, quantity, couponCode } = checkoutOf(content);
  const item = input.itemId == null ? {} : { itemId: input.itemId };
  return {
    items: [{ priceId: plan.priceId, quantity, ...item }],
    couponCode,
    prorationAtMs: input.prorationAtMs ?? 0,
    runId,
    isPlanChange: true,
  };
}

/** What a checkout would charge now. */
async function amountOf(
  { vendor, catalogue, run }: Pick<StepContext, 'vendor' | 'catalogue' | 'run'>,
  input: StepInput,
  nowMs: number,
): Promise<VendorResult<Money>> {
  const { plan, quantity, couponCode } = checkoutOf(run.content);
  if (input.subscriptionId != null)
    return vendor.previewChange(input.subscriptionId, planChange(run, input));
  const coupon = couponCode === null ? null : (findCoupon(catalogue, couponCode, nowMs) ?? null);
  const amount = discountedAmount(plan.amount * quantity, coupon);
  return ok({ amount, currency: catalogue.currency });
}

function lookUpInvoice(isDone: (invoice: VendorInvoice) => boolean): Step['lookUp'] {
  return async ({ vendor, known }) => {
    const found = await vendor.findInvoice(invoiceOf(known));
    return map(found, (invoice) => (isDone(invoice) ? describeInvoice(invoice) : null));
  };
}

const describeInvoice = (invoice: VendorInvoice): StepOutput => ({
  invoiceId: invoice.invoiceId,
  invoiceStatus: invoice.status,
  total: invoice.total,
  ...(invoice.clientSecret !== null && { clientSecret: invoice.clientSecret }),
});

const describeAddons = (subscription: VendorSubscription): StepOutput => ({
  charged: subscription.latestInvoiceTotal,
  ...(subscription.latestInvoiceId !== null && { invoiceId: subscription.latestInvoiceId }),
});

function describeCheckout(content: RunContent, subscription: VendorSubscription): StepOutput {
  const { plan, quantity, couponCode } = checkoutOf(content);
  return {
    charged: subscription.latestInvoiceTotal,
    subscription: {
      id: subscription.subscriptionId,
      planId: plan.id,
      status: subscription.status,
      quantity,
      couponCode,
      currentPeriodStartMs: subscription.currentPeriodStartMs,
      currentPeriodEndMs: subscription.currentPeriodEndMs,
      amount: subscription.latestInvoiceTotal ?? { amount: 0, currency: 'usd' },
      latestInvoiceId: subscription.latestInvoiceId,
    },
  };
}

const ok = <Value>(value: Value): VendorResult<Value> => ({ outcome: 'ok', value });

function map<From, To>(result: VendorResult<From>, to: (value: From) => To): VendorResult<To> {
  return result.outcome === 'ok' ? ok(to(result.value)) : result;
}

const customerOf = (known: StepOutput): string => needed(known.customerId, 'a customer');
const invoiceOf = (known: StepOutput): string => needed(known.invoiceId, 'an invoice');

function needed(value: string | undefined, what: string): string {
  if (value === undefined) throw new AppError('BUG', `a step of a run comes before ${what}`);
  return value;
}

/** @throws AppError BUG where the run is no purchase of credits. */
export function purchaseOf({ content }: Run) {
  if (content.type !== 'purchase') throw new AppError('BUG', 'a run is no purchase of credits');
  return content.purchase;
}

function addonsOf(content: RunContent) {
  if (content.type !== 'addons') throw new AppError('BUG', 'a run is no purchase of add-ons');
  return content;
}

/** @throws AppError BUG where the run is no checkout. */
export function checkoutOf(content: RunContent) {
  if (content.type !== 'checkout') throw new AppError('BUG', 'a run is no checkout');
  return content;
}
