/**
 * A **purchase workflow**: one purchase from its start to its one ending.
 *
 * It goes from pending to success, declined, refused or failed, and stays there. Its calls to the payment provider are
 * done in steps (`workflow-steps.ts`).
 *
 * A **lane** of an account holds one pending purchase workflow at most. A start of the same purchase joins it, and a
 * start of another is refused (`account-billing.md` §3). Purchases by card wait for a person, so they exclude no other
 * purchase.
 */

import { isSameMoney, type Money } from '../values/money.ts';

export type PurchaseStatus = 'pending' | 'success' | 'declined' | 'refused' | 'failed';
export type PurchaseEnding = Exclude<PurchaseStatus, 'pending'>;

export type PurchaseKind = 'addons' | 'credits' | 'inbox_previews' | 'checkout';

/** The arrangement with the payment provider by which an account pays. */
export type PaymentMethodType = 'card' | 'invoiced';

export type PurchaseLane = 'invoiced' | 'addons' | 'checkout' | 'card';

/** The lane of a purchase. `card` is the one without exclusion. */
export function laneOf(kind: PurchaseKind, rail: PaymentMethodType): PurchaseLane {
  if (kind === 'addons' || kind === 'checkout') return kind;
  return rail;
}

/**
 * Identity of a purchase: two starts with the same kind and content are one purchase. The price is not part of it: a
 * catalogue that changes between two clicks must not turn one purchase into two.
 */
export function fingerprintOf(
  kind: PurchaseKind,
  content: Readonly<Record<string, unknown>>,
): string {
  const parts = Object.keys(content)
    .toSorted()
    .map((key) => [key, canonical(content[key])]);
  return JSON.stringify([kind, ...parts]);
}

/** Lists are sets here: the order in which add-ons are named has no meaning. */
const canonical = (value: unknown): unknown =>
  Array.isArray(value) ? [...new Set(value.map(String))].toSorted() : value;

/** Judges a start by the pending purchase in its lane. */
export function judgeStart(
  lane: PurchaseLane,
  pendingFingerprint: string | undefined,
  fingerprint: string,
): 'create' | 'join' | 'in-flight' {
  if (lane === 'card' || pendingFingerprint === undefined) return 'create';
  // Concurrent checkouts of an account share a purchase workflow, even for different plans. At the end each learns
  // whether the purchase was its own (`account-billing.md` §4).
  if (lane === 'checkout') return 'join';
  return pendingFingerprint === fingerprint ? 'join' : 'in-flight';
}

/** Answer to a caller who asked for this plan, coupon, quantity and amount, after a checkout that bought something. */
export function judgeCheckout(
  bought: {
    readonly planId: string;
    readonly couponCode: string | null;
    readonly quantity: number;
    readonly charged: Money | null;
  },
  asked: {
    readonly planId: string;
    readonly couponCode: string | null;
    /** Absent if the caller names no quantity. */
    readonly quantity?: number | undefined;
    readonly expectedAmount?: Money | undefined;
  },
): 'success' | 'conflict' {
  if (bought.planId !== asked.planId) return 'conflict';
  const { expectedAmount, quantity = bought.quantity } = asked;
  if (quantity !== bought.quantity) return 'conflict';
  if (expectedAmount && !isSameMoney(expectedAmount, bought.charged)) return 'conflict';
  return asked.couponCode !== null && asked.couponCode !== bought.couponCode
    ? 'conflict'
    : 'success';
}
