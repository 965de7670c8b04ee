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
      /** Which add-on each of the prices is of, whatever the catalogue says later. Absent: from before it was kept. */
      readonly prices?: readonly { readonly sku: string; readonly addon: string }[];
    }
  | {
      readonly type: 'checkout';
      readonly plan: Plan;
      readonly quantity: number;
      readonly couponCode: string | null;
      /** Becomes the card on file first. */
      readonly paymentMethodId: string | null;
      /** What the customer was shown: nothing else is charged. Null or absent: whatever it costs. */
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

/** What of a purchase's price went back to the customer, at the payment provider. */
export interface PurchaseReversal {
  /** A dispute: the bank has decided for its customer. */
  readonly cause: ReversalCause;
  readonly amount: Money;
  /** All that was taken: only then the credits are taken back. */
  readonly isWhole: boolean;
  /** Credits taken back, of all kinds; at most what was left of them. */
  readonly creditsTaken: number;
  readonly atMs: number;
}

export interface PurchaseResult {
  /** Nothing was charged where it is null. */
  readonly charged: Money | null;
  /** What a bank has taken on and has not paid yet; once it has, it is `charged`. */
  readonly due?: Money;
  /**
   * What was `due` until its invoice was given up at the payment provider. It may be paid after all; nobody looks for
   * it.
   */
  readonly givenUp?: Money;
  /** What the customer had in credit with the payment provider paid all of it. */
  readonly isPaidByCredit?: true;
  readonly invoiceId: string | null;
  /** Add-ons. */
  readonly items?: readonly AddonItem[];
  /** Checkout. */
  readonly subscription?: BoughtSubscription;
  /** Where money was taken; absent of purchases from before there were receipts. */
  readonly receiptId?: string;
  /** Since its ending; the ending stays. */
  readonly reversal?: PurchaseReversal;
  /** Why nothing was bought, where no card was declined: the payment provider's code, or ours. */
  readonly refusal?: string;
}
