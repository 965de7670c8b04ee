/**
 * Content of a purchase workflow, fixed at its start, and its result. Kept as JSON with the purchase workflow.
 *
 * The API writes the content. The worker compares it with its own catalogue before it asks the payment provider for
 * anything (`refusalOfContent`), so the API's row alone cannot set a price.
 */
import type { AddonItem } from './addon-decision.ts';
import { CREDIT_KINDS } from './allowance.ts';
import {
  findCoupon,
  priceCredits,
  pricePack,
  type Catalogue,
  type CreditPurchase,
  type Plan,
} from './catalogue.ts';
import { isSameMoney, type Money } from '../values/money.ts';

/** Under which name and address the payment provider knows the account. */
export interface BillingContact {
  readonly name: string;
  readonly email: string;
}

export type PurchaseContent = { readonly contact: BillingContact } & (
  | { readonly type: 'purchase'; readonly purchase: CreditPurchase }
  | {
      readonly type: 'addons';
      readonly skus: readonly string[];
      /** The add-on of each price, kept for later changes of the catalogue. Absent in older purchases. */
      readonly prices?: readonly { readonly sku: string; readonly addon: string }[];
    }
  | {
      readonly type: 'checkout';
      readonly plan: Plan;
      readonly quantity: number;
      readonly couponCode: string | null;
      /** Becomes the card on file first. */
      readonly paymentMethodId: string | null;
      /**
       * The amount that the customer saw: no other amount is charged. Null or absent: any price is charged.
       */
      readonly expectedAmount?: Money | null;
    }
);

/**
 * Compares a content with the catalogue, in its price and in the goods for that price.
 *
 * @returns undefined if the catalogue sells it so. `amount_changed` also if it never has.
 */
export function refusalOfContent(
  content: PurchaseContent,
  catalogue: Catalogue,
  nowMs: number,
): 'amount_changed' | 'coupon_expired' | undefined {
  switch (content.type) {
    case 'purchase':
      return isPriced(content.purchase, catalogue) ? undefined : 'amount_changed';
    case 'addons': {
      // The step `inspect` refuses prices that are not in the catalogue, with their names.
      const isOther = ({ sku, addon }: { readonly sku: string; readonly addon: string }): boolean =>
        catalogue.addons.some((each) => each.sku === sku && each.addon !== addon);
      return content.prices?.some(isOther) ? 'amount_changed' : undefined;
    }
    case 'checkout': {
      const { plan, quantity, couponCode } = content;
      const sold = catalogue.plans.find(({ id }) => id === plan.id);
      if (!sold || sold.isRetired || !isSamePlan(plan, sold)) return 'amount_changed';
      // The provider makes a subscription of quantity 0 without a price, and the plan would be in force.
      if (!Number.isSafeInteger(quantity) || quantity < 1) return 'amount_changed';
      return couponCode === null || findCoupon(catalogue, couponCode, nowMs)
        ? undefined
        : 'coupon_expired';
    }
    // Of a newer version, or malformed.
    default:
      return 'amount_changed';
  }
}

function isPriced(purchase: CreditPurchase, catalogue: Catalogue): boolean {
  const { kind, quantity, packId, price, expiresAfterDays } = purchase;
  const sold =
    kind === 'inbox_previews'
      ? pricePack(catalogue, packId ?? '')
      : Object.hasOwn(catalogue.credits, kind) && priceCredits(catalogue, kind, quantity);
  return (
    typeof sold === 'object' &&
    sold.quantity === quantity &&
    sold.expiresAfterDays === expiresAfterDays &&
    isSameMoney(sold.price, price)
  );
}

/** Of all that is charged or granted. A text may differ: the processes may have two versions of the catalogue. */
const isSamePlan = (plan: Plan, sold: Plan): boolean =>
  plan.tier === sold.tier &&
  plan.interval === sold.interval &&
  plan.amount === sold.amount &&
  plan.priceId === sold.priceId &&
  plan.profiles === sold.profiles &&
  CREDIT_KINDS.every((kind) => plan.included[kind] === sold.included[kind]);

export interface BoughtSubscription {
  readonly id: string;
  /** This purchase began it, and has not changed one that there was. Absent in a result that an older version wrote. */
  readonly isNew?: boolean;
  readonly planId: string;
  readonly status: string;
  readonly quantity: number;
  readonly couponCode: string | null;
  readonly currentPeriodStartMs: number;
  readonly currentPeriodEndMs: number;
  readonly amount: Money;
  readonly latestInvoiceId: string | null;
}

export type ReversalCause = 'refund' | 'dispute';

/** The part of a purchase's price that went back to the customer at the payment provider. */
export interface PurchaseReversal {
  /** A dispute: the bank has decided for its customer. */
  readonly cause: ReversalCause;
  readonly amount: Money;
  /** All that was taken: only then the credits are taken back. */
  readonly isWhole: boolean;
  /** Credits taken back, of all kinds; at most the ones that remained. */
  readonly creditsTaken: number;
  readonly atMs: number;
}

export interface PurchaseResult {
  /** Null if no charge was made. */
  readonly charged: Money | null;
  /** The amount that a bank has accepted and not paid yet; once it pays, the amount is `charged`. */
  readonly due?: Money;
  /**
   * The amount that was `due` until its invoice was given up at the payment provider. It may be paid after all, but
   * Sluice does not check for that.
   */
  readonly givenUp?: Money;
  /** The customer's credit with the payment provider paid all of it. */
  readonly isPaidByCredit?: true;
  readonly invoiceId: string | null;
  /** Add-ons. */
  readonly items?: readonly AddonItem[];
  /** Checkout. */
  readonly subscription?: BoughtSubscription;
  /** Present if money was taken; absent in purchases that are older than receipts. */
  readonly receiptId?: string;
  /** Since its ending; the ending stays. */
  readonly reversal?: PurchaseReversal;
  /** The reason of a purchase without effect, if no card was declined: the payment provider's code, or ours. */
  readonly refusal?: string;
}
