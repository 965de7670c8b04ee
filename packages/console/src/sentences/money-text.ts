/** Money in words. Pure. */
import type { AnswerOf, Described } from '../client/operations.ts';

/** Of whole minor units. */
export type Money = Described<'Money'>;

/** `$1,000.00`, `¥1,000`: with as many digits as the currency has. */
export function moneyText({ amount, currency }: Money): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

/** `10,000`. */
export const countText = (count: number): string => new Intl.NumberFormat('en').format(count);

/** Its `date` is a day of UTC. */
export type NextInvoice = AnswerOf<
  'get',
  '/v1/accounts/{account_id}/billing/info'
>['billing']['next_invoice'];

/** The day stays as it is in every zone: as a time it would be the day before, west of UTC. */
export function nextInvoiceText(next: NextInvoice, overage: Money | undefined): string {
  if (next === null) {
    const used = overage ? ` Usage beyond the plan costs ${moneyText(overage)}.` : '';
    return `There is no subscription, so no invoice comes by itself.${used}`;
  }
  const beyond = overage ? ` and ${moneyText(overage)} for usage beyond the plan` : '';
  return `The next invoice, of ${next.date} (UTC), is ${moneyText(next.estimated)}${beyond}: an estimate, before taxes and coupons.`;
}
