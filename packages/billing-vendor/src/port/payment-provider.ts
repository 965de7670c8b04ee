/**
 * The payment provider port: the calls that billing makes, in our words. One adapter implements it with the payment
 * provider's official SDK (`stripe-provider.ts`), which also talks to the simulator.
 *
 * Every call that changes something is given its idempotency key. The outcome states the effect, never an exception;
 * only `unknown` leaves it open.
 */
import type { Interval } from '@sluice/domain/billing/catalogue';
import type { Money } from '@sluice/domain/values/money';
import type { ReversalCause } from '@sluice/domain/billing/purchase-content';
import type { ProratedInvoice, SubscriptionLine } from '@sluice/domain/billing/unused-time';

export type ProviderResult<Value> =
  | { readonly outcome: 'ok'; readonly value: Value }
  /** The card was refused: no money was taken, and the same key returns that for ever. */
  | { readonly outcome: 'declined'; readonly declineCode: string | null }
  /** The payment provider will not do this, however often it is asked. */
  | { readonly outcome: 'refused'; readonly code: string }
  | {
      readonly outcome: 'unknown';
      readonly reason: string;
      /** The same key will give this answer for ever: look up the object, then use another key. */
      readonly isFinal: boolean;
    };

export type InvoiceStatus = 'draft' | 'open' | 'paid' | 'uncollectible' | 'void' | 'deleted';

/** The latest attempt to pay an open amount. */
export type InvoicePayment =
  /** A bank takes days; until then the invoice is unpaid, and it must not be paid again. */
  | { readonly state: 'processing' }
  | { readonly state: 'failed'; readonly declineCode: string | null };

/** Result of a call whose effect can be neither known nor undone while a payment is being processed. */
export const STILL_PROCESSING: ProviderResult<never> = {
  outcome: 'unknown',
  reason: 'a payment is being processed',
  isFinal: false,
};

export interface ProviderInvoice {
  readonly invoiceId: string;
  readonly customerId: string;
  readonly status: InvoiceStatus;
  readonly total: Money;
  /** The unpaid part of it, in minor units of its currency: the customer's credit goes first. */
  readonly amountRemaining: number;
  /** In minor units: the part of it that the customer's credit does not pay, paid or not. */
  readonly amountDue: number;
  /** Of the purchase that made it, with its account. */
  readonly runId: string | null;
  readonly accountId: number | null;
  readonly lineCount: number;
  /** The lines for a subscription: all of them if the invoice is listed, otherwise the first ten. */
  readonly subscriptionLines: readonly SubscriptionLine[];
  /** The part of the credits among them that it charges again because it was refunded. */
  readonly withheld: number;
  /** Only of an invoice that its customer may pay. */
  readonly clientSecret: string | null;
  /** Address at which its customer may pay it, at the payment provider's; null until it is finalized. */
  readonly paymentPage: string | null;
  /** Set by `findInvoice` only; null if no payment was tried. */
  readonly payment: InvoicePayment | null;
  /** The subscription that it is for; null if it is for one purchase. */
  readonly subscriptionId: string | null;
}

/** Money that was taken, and how much of it went back. */
export interface ProviderPayment {
  /** Null if it paid no invoice. */
  readonly invoiceId: string | null;
  readonly taken: Money;
  /**
   * In minor units, at most the amount that was taken: refunds, and disputes that the bank has decided for its
   * customer.
   */
  readonly amountReturned: number;
  readonly cause: ReversalCause;
}

/** Part of a list, newest first. */
export interface ProviderPage<Item> {
  readonly items: readonly Item[];
  /** Start of the next part; absent at the end. */
  readonly next?: string;
}

export interface SubscriptionItem {
  readonly itemId: string;
  readonly priceId: string;
  readonly quantity: number;
  /** Of the purchase that brought it. */
  readonly runId: string | null;
}

export interface ProviderSubscription {
  readonly subscriptionId: string;
  readonly customerId: string;
  readonly status: string;
  readonly interval: Interval;
  readonly items: readonly SubscriptionItem[];
  readonly currentPeriodStartMs: number;
  readonly currentPeriodEndMs: number;
  readonly isEndingAtPeriodEnd: boolean;
  readonly latestInvoiceId: string | null;
  /** The charged amount; 0 if the unused time was worth more than the new. */
  readonly latestInvoiceTotal: Money | null;
  /** `draft` or `open` while its money is still to come. */
  readonly latestInvoiceStatus: InvoiceStatus | null;
  /** Of the purchase that last changed it. */
  readonly runId: string | null;
}

/** Data that the payment provider keeps of a customer besides ours. */
export interface ProviderCustomer {
  /** `none`, `exempt` or `reverse`. */
  readonly taxExempt: string;
  /** The amount that reduces the next invoices, in minor units of the catalogue's currency. */
  readonly creditAmount: number;
  /** A card, or a bank account, that purchases can charge. */
  readonly hasPaymentMethod: boolean;
}

export interface CardOnFile {
  readonly paymentMethodId: string;
  readonly type: string;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: number;
  readonly expYear: number;
  readonly funding: string;
  /** Of the cardholder. */
  readonly holderName: string | null;
  readonly createdAtMs: number;
}

/** A customer's details on invoices. */
export interface CustomerDetails {
  readonly name: string;
  readonly email: string;
  /** Null without an address. */
  readonly address: {
    readonly line1: string;
    readonly line2: string | null;
    readonly city: string;
    readonly state: string | null;
    readonly postalCode: string | null;
    /** ISO 3166-1 alpha-2. */
    readonly country: string;
  } | null;
  /** Null without a tax id. One that the payment provider finds malformed is left out. */
  readonly taxId: { readonly type: string; readonly value: string } | null;
}

export interface SubscriptionChange {
  /** `itemId`: this item takes the price. Absent: a new item. */
  readonly items: readonly {
    readonly priceId: string;
    readonly itemId?: string;
    readonly quantity: number;
  }[];
  readonly couponCode: string | null;
  /** The moment that unused time is counted from: fixed with the intent, so that a repeat is the same. */
  readonly prorationAtMs: number;
  /**
   * The part of the credit for unused time that was refunded before, in minor units: it is charged again. Absent counts
   * as 0.
   */
  readonly withheld?: number;
  readonly runId: string;
}

/** The price of a change. */
export interface ChangePreview extends Money {
  readonly subscriptionLines: readonly SubscriptionLine[];
}

export interface PaymentProvider {
  createCustomer(
    customer: { readonly accountId: number; readonly name: string; readonly email: string },
    key: string,
  ): Promise<ProviderResult<string>>;
  /** Finds the customer by the data that `createCustomer` wrote. */
  findCustomer(accountId: number, email: string): Promise<ProviderResult<string | null>>;
  /** Replaces the details at the payment provider. */
  updateCustomer(
    customerId: string,
    details: CustomerDetails,
    key: string,
  ): Promise<ProviderResult<null>>;
  readCustomer(customerId: string): Promise<ProviderResult<ProviderCustomer>>;
  createInvoice(
    invoice: {
      readonly customerId: string;
      readonly accountId: number;
      readonly runId: string;
      readonly currency: string;
    },
    key: string,
  ): Promise<ProviderResult<ProviderInvoice>>;
  addLine(
    line: {
      readonly customerId: string;
      readonly invoiceId: string;
      readonly price: Money;
      readonly description: string;
      readonly runId: string;
    },
    key: string,
  ): Promise<ProviderResult<null>>;
  finalizeInvoice(invoiceId: string, key: string): Promise<ProviderResult<ProviderInvoice>>;
  /** Charges the card on file. A bank account's payment is under way for days: the invoice comes back `open`. */
  payInvoice(invoiceId: string, key: string): Promise<ProviderResult<ProviderInvoice>>;
  /**
   * Deletes a draft, voids an invoice that is open or given up; one that is void, deleted or paid already is returned
   * as it is. `unknown` while a payment is being processed: it may yet be paid.
   */
  discardInvoice(invoiceId: string, key: string): Promise<ProviderResult<ProviderInvoice>>;
  findInvoice(invoiceId: string): Promise<ProviderResult<ProviderInvoice>>;
  /**
   * By the object that an event names: the charge itself, or a refund or a dispute of it. Null if the charge does not
   * exist.
   */
  readPayment(
    about: 'charge' | 'refund' | 'dispute',
    id: string,
  ): Promise<ProviderResult<ProviderPayment | null>>;
  /** Of all customers: the charge of each refund or dispute. It is null for one without a charge. */
  listReversedCharges(
    about: 'refund' | 'dispute',
    after: string | undefined,
  ): Promise<ProviderResult<ProviderPage<string | null>>>;
  /** Of all customers. */
  listInvoices(after: string | undefined): Promise<ProviderResult<ProviderPage<ProviderInvoice>>>;
  /** Of all customers; ended ones are left out. */
  listSubscriptions(
    after: string | undefined,
  ): Promise<ProviderResult<ProviderPage<ProviderSubscription>>>;
  /** The customer's unpaid invoices by now, the newest hundred. */
  listOpenInvoices(customerId: string): Promise<ProviderResult<readonly ProviderInvoice[]>>;
  /** By its purchase, among the customer's newest. */
  findInvoiceOfRun(
    customerId: string,
    runId: string,
  ): Promise<ProviderResult<ProviderInvoice | null>>;
  /** @returns it with the invoice that this made as its latest. */
  createSubscription(
    subscription: {
      readonly customerId: string;
      readonly priceId: string;
      readonly quantity: number;
      readonly couponCode: string | null;
      readonly runId: string;
    },
    key: string,
  ): Promise<ProviderResult<ProviderSubscription>>;
  /** @returns it with the invoice of this change as its latest; without a latest invoice if this made no invoice. */
  changeSubscription(
    subscriptionId: string,
    change: SubscriptionChange,
    key: string,
  ): Promise<ProviderResult<ProviderSubscription>>;
  /** Ends it at once: it is not charged any more, and no money is paid back. One that has ended stays so. */
  cancelSubscription(subscriptionId: string, key: string): Promise<ProviderResult<null>>;
  /** The price of a `changeSubscription`. */
  previewChange(
    subscriptionId: string,
    change: SubscriptionChange,
  ): Promise<ProviderResult<ChangePreview>>;
  /** Its newest hundred invoices, oldest first, each with its refunded amount. */
  listInvoicesOfSubscription(
    customerId: string,
    subscriptionId: string,
  ): Promise<ProviderResult<readonly ProratedInvoice[]>>;
  /** In minor units: the amount that `takeBackCredit` has taken so far. */
  readCreditTakenBack(customerId: string, subscriptionId: string): Promise<ProviderResult<number>>;
  /** Takes credit that a subscription gave for unused time from the customer's balance. */
  takeBackCredit(
    taken: {
      readonly customerId: string;
      readonly subscriptionId: string;
      readonly credit: Money;
    },
    key: string,
  ): Promise<ProviderResult<null>>;
  /** The one that is in force, or else one that may be again; null if all have ended. */
  findSubscription(customerId: string): Promise<ProviderResult<ProviderSubscription | null>>;
  /**
   * The subscription that a purchase made or changed, in its present state, with the purchase's own invoice as its
   * latest, not a later one; null if the purchase did neither.
   */
  findSubscriptionOfRun(
    customerId: string,
    runId: string,
  ): Promise<ProviderResult<ProviderSubscription | null>>;
  /** In any state; null if it never existed. */
  readSubscription(subscriptionId: string): Promise<ProviderResult<ProviderSubscription | null>>;
  /** False if it is used up, has expired or does not exist. */
  isCouponValid(code: string): Promise<ProviderResult<boolean>>;
  findDefaultCard(customerId: string): Promise<ProviderResult<CardOnFile | null>>;
  /** Saves it if it is not the customer's yet, and charges it from now on. */
  setDefaultCard(customerId: string, paymentMethodId: string): Promise<ProviderResult<null>>;
}
