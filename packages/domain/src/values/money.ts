/**
 * Money: whole minor units of one ISO 4217 currency in lower case, never a fraction, never a float
 * of a major unit (`account-conventions.md` §3.3). Shares are rounded once, half up.
 */
import { AppError } from './errors.ts';

export interface Money {
  /** Whole minor units: cents of a dollar, yen of a yen. */
  readonly amount: number;
  /** Three lower-case letters. */
  readonly currency: string;
}

/** @throws AppError BUG if the amount is not a whole number from 0 to 2^53 - 1. */
export function money(amount: number, currency: string): Money {
  if (!Number.isSafeInteger(amount) || amount < 0)
    throw new AppError('BUG', `${amount} is no amount of money`);
  return { amount, currency };
}

/** @param other - null counts as 0. */
export const isSameMoney = (one: Money, other: Money | null): boolean =>
  one.amount === (other?.amount ?? 0) && (other === null || one.currency === other.currency);

/**
 * The part of `amount` that `share` of `whole` is, rounded half up.
 *
 * @param share - whole, 0 to `whole`.
 */
export function proratedAmount(amount: number, share: number, whole: number): number {
  if (whole <= 0) return 0;
  const numerator = BigInt(amount) * BigInt(Math.min(Math.max(share, 0), whole));
  const denominator = BigInt(whole);
  // In BigInt: an amount times seconds is too large for an exact double.
  return Number((2n * numerator + denominator) / (2n * denominator));
}

/** The rest of `amount` under a coupon; never below 0. */
export function discountedAmount(
  amount: number,
  coupon: { readonly percentOff: number | null; readonly amountOff: number | null } | null,
): number {
  if (coupon === null) return amount;
  if (coupon.percentOff !== null)
    return amount - proratedAmount(amount, Math.round(coupon.percentOff * 100), 10_000);
  return Math.max(0, amount - (coupon.amountOff ?? 0));
}
