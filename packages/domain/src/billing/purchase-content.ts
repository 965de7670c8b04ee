/** Content of a purchase workflow, fixed at its start, and its result. Kept as JSON with the purchase workflow. */
import type { AddonItem } from './addon-decision.ts';
import type { CreditPurchase, Plan } from './catalogue.ts';
import type { Money } from '../values/money.ts';

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
