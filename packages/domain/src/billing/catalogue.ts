/**
 * Catalogue of plans, add-ons, packs, credits and coupons. It is one versioned value that is read and validated at
 * start (`billing-vendor/src/catalogue/read-catalogue.ts`). A purchase workflow keeps the price that it was started
 * with. If the worker's version has another one before the first charge, it ends without a charge. Clients name entries,
 * never amounts.
 */
import type { Money } from '../values/money.ts';

/** The two that clients name in paths and bodies (`account-billing.md` §2). */
const CREDIT_TYPES = ['llm', 'builder'] as const;
export type CreditType = (typeof CREDIT_TYPES)[number];
/** Everything that has credit pools. */
export type CreditKind = CreditType | 'inbox_previews';
export type Interval = 'month' | 'year';
export type Tier = 'builder' | 'essentials' | 'premium' | 'enterprise';

export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly productType: string;
  readonly tier: Tier;
  readonly interval: Interval;
  readonly amount: number;
  /** The payment provider's recurring price. */
  readonly priceId: string;
  /** Monthly allowance of each kind of credit. */
  readonly included: Readonly<Record<CreditKind, number>>;
  /** Profiles of people that it includes. */
  readonly profiles: number;
  readonly features: readonly string[];
  readonly isRetired: boolean;
}

/** One recurring price of an add-on. */
export interface AddonPrice {
  /** The payment provider's price, which clients name. */
  readonly sku: string;
  /** Prices of one add-on share it. */
  readonly addon: string;
  readonly name: string;
  readonly interval: Interval;
  readonly amount: number;
  readonly isRetired: boolean;
}

export interface Pack {
  readonly id: string;
  readonly quantity: number;
  readonly amount: number;
  /** Null: bought credits do not expire. */
  readonly expiresAfterDays: number | null;
}

/** How one type of credit is sold: in multiples. */
export interface CreditOffer {
  readonly multiple: number;
  readonly quantityMax: number;
  readonly amountPerMultiple: number;
  readonly expiresAfterDays: number | null;
}

/** Exactly one of the two reductions is set. */
export interface Coupon {
  readonly code: string;
  readonly name: string;
  readonly percentOff: number | null;
  readonly amountOff: number | null;
  /** It may be named until then. */
  readonly expiresAtMs: number | null;
  /**
   * The invoices of a subscription that it reduces: the first, so many months of them, or all. The payment provider
   * deducts it.
   */
  readonly duration: 'once' | 'repeating' | 'forever';
  /** Of `repeating`; null otherwise. */
  readonly durationMonths: number | null;
  /** Number of uses by all customers together, at most; null if unlimited. The payment provider counts. */
  readonly redemptionCountMax: number | null;
}

export interface Catalogue {
  readonly version: number;
  readonly currency: string;
  readonly plans: readonly Plan[];
  readonly addons: readonly AddonPrice[];
  readonly packs: readonly Pack[];
  readonly credits: Readonly<Record<CreditType, CreditOffer>>;
  readonly coupons: readonly Coupon[];
  /** Of a profile beyond the included ones: minor units a month, as decimal digits such as `0.04`. */
  readonly profileAmountDecimal: string;
}

/** Number, kind and price of the credits of one purchase. */
export interface CreditPurchase {
  readonly kind: CreditKind;
  readonly quantity: number;
  /** Of inbox previews. */
  readonly packId: string | null;
  readonly price: Money;
  readonly expiresAfterDays: number | null;
  readonly catalogueVersion: number;
}

/** Prices a quantity of credits; undefined if it is not sold in that quantity. */
export function priceCredits(
  catalogue: Catalogue,
  type: CreditType,
  quantity: number,
): CreditPurchase | undefined {
  const offer = catalogue.credits[type];
  // Also no text of digits, as a content that was kept as JSON may have: it would be joined to sums, not added.
  if (!Number.isSafeInteger(quantity) || quantity <= 0) return undefined;
  if (quantity > offer.quantityMax || quantity % offer.multiple !== 0) return undefined;
  const amount = (quantity / offer.multiple) * offer.amountPerMultiple;
  return {
    kind: type,
    quantity,
    packId: null,
    price: { amount, currency: catalogue.currency },
    expiresAfterDays: offer.expiresAfterDays,
    catalogueVersion: catalogue.version,
  };
}

/** Prices a pack of inbox previews; undefined if the name is unknown. */
export function pricePack(catalogue: Catalogue, packId: string): CreditPurchase | undefined {
  const pack = catalogue.packs.find((each) => each.id === packId);
  if (!pack) return undefined;
  return {
    kind: 'inbox_previews',
    quantity: pack.quantity,
    packId,
    price: { amount: pack.amount, currency: catalogue.currency },
    expiresAfterDays: pack.expiresAfterDays,
    catalogueVersion: catalogue.version,
  };
}

/** As it stands on invoices and receipts. */
export const describeCredits = ({ kind, quantity }: CreditPurchase): string =>
  `${quantity} ${kind === 'inbox_previews' ? 'inbox previews' : `${kind} credits`}`;

/** The coupon in force under that code. Codes are compared as they are. */
export function findCoupon(catalogue: Catalogue, code: string, nowMs: number): Coupon | undefined {
  return catalogue.coupons.find(
    (coupon) => coupon.code === code && (coupon.expiresAtMs === null || coupon.expiresAtMs > nowMs),
  );
}
