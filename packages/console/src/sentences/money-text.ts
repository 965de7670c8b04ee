/** Money in words. Pure. */

export interface Money {
  /** Whole minor units. */
  readonly amount: number;
  /** Three lower-case letters. */
  readonly currency: string;
}

/** `$1,000.00`, `¥1,000`: with as many digits as the currency has. */
export function moneyText({ amount, currency }: Money): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

/** `10,000`. */
export const countText = (count: number): string => new Intl.NumberFormat('en').format(count);
