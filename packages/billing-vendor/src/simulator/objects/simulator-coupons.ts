/**
 * Coupons of the simulated payment provider: they reduce the first invoice of a subscription, and the invoices of the
 * months after it while they last. The payment provider counts how often each was used.
 */
import { addMonths } from './simulator-periods.ts';
import { formsOf, invalid, noSuch, textOf, type FormValue } from '../engine/simulator-request.ts';
import { wireOf, type SimulatorState, type ProviderObject } from '../engine/simulator-state.ts';

/** @throws ProviderRefusal 404 if it does not exist, 400 if it is used up. */
export function couponOf(
  state: SimulatorState,
  discounts: FormValue | undefined,
): ProviderObject | null {
  const id = textOf(formsOf(discounts)[0]?.['coupon']);
  if (id === undefined) return null;
  const coupon = state.get('coupon', id);
  if (!coupon) throw noSuch('coupon', id);
  if (isUsedUp(coupon))
    throw invalid(`Coupon ${id} is used up and cannot be applied.`, { code: 'coupon_expired' });
  return coupon;
}

function isUsedUp(coupon: ProviderObject): boolean {
  const most = coupon['max_redemptions'];
  return typeof most === 'number' && Number(coupon['times_redeemed']) >= most;
}

export const renderCoupon = (coupon: ProviderObject): ProviderObject => ({
  ...wireOf(coupon),
  valid: !isUsedUp(coupon),
});

/**
 * Call it once the coupon is paid for.
 *
 * @returns the coupon's fields of the subscription.
 */
export function redeemCoupon(state: SimulatorState, coupon: ProviderObject) {
  state.save('coupon', { ...coupon, times_redeemed: Number(coupon['times_redeemed']) + 1 });
  const months = coupon['duration_in_months'];
  return {
    discounts: [coupon.id],
    simulated_discount_end:
      coupon['duration'] === 'forever'
        ? null
        : addMonths(new Date(state.now()), typeof months === 'number' ? months : 0),
  };
}

/** The coupon that reduces an invoice of that moment, in Unix seconds. */
export function runningCoupon(
  state: SimulatorState,
  subscription: ProviderObject,
  atSeconds: number,
): ProviderObject | null {
  const [id] = subscription['discounts'] as string[];
  const end = subscription['simulated_discount_end'];
  // `once` has ended with its first invoice.
  const isOver = end === undefined || (typeof end === 'number' && atSeconds >= end);
  return isOver ? null : (state.get('coupon', id) ?? null);
}
