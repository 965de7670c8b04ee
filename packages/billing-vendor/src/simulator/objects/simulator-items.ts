/** Items of a simulated subscription, and the price of a change. */
import { discountedAmount, proratedAmount } from '@sluice/domain/values/money';
import { linesOf, netOf, subscriptionItemOf, type NewLine } from './simulator-lines.ts';
import { periodEnd } from './simulator-periods.ts';
import {
  flagOf,
  formsOf,
  integerOf,
  invalid,
  metadataOf,
  noSuch,
  textOf,
  type Form,
} from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

export interface Item {
  readonly id: string;
  readonly price: ProviderObject;
  readonly quantity: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly current_period_start: number;
  readonly current_period_end: number;
}

/** The price of a change of items, and the items after it. */
export interface Change {
  readonly items: readonly Item[];
  readonly lines: readonly NewLine[];
  /** Set if a new cycle begins with it. */
  readonly anchor?: number;
}

export const itemsOf = (subscription: ProviderObject): Item[] =>
  (subscription['items'] as { data: Item[] }).data;

export function priceOf(state: SimulatorState, id: string): ProviderObject {
  const price = state.get('price', id);
  if (!price) throw noSuch('price', id);
  return price;
}

export const currencyOf = (items: readonly Item[]): string => {
  const currency = items[0]?.price['currency'];
  return typeof currency === 'string' ? currency : 'usd';
};

export const intervalOf = (price: ProviderObject): string =>
  (price['recurring'] as { interval: string }).interval;

/**
 * Unused time is worth the amount that was paid for it, as with the payment provider: after its coupons, never its list
 * price. New time is worth its price under the coupon.
 *
 * @param coupon - of the change; null without a coupon.
 */
export function changeItems(
  state: SimulatorState,
  subscription: ProviderObject,
  body: Form,
  coupon: ProviderObject | null,
): Change {
  const existing = itemsOf(subscription);
  const [first] = existing;
  if (!first) throw invalid('The subscription has no items.');
  const { current_period_start: start, current_period_end: end } = first;
  const at = integerOf(body['proration_date'], 'proration_date') ?? state.nowSeconds();
  // A trial goes on after any change, free of charge.
  const isTrial = subscription['status'] === 'trialing';
  const share = (price: ProviderObject, quantity: number): number =>
    isTrial ? 0 : proratedAmount(Number(price['unit_amount']) * quantity, end - at, end - start);

  let items = [...existing];
  let anchor: number | undefined;
  const credits: NewLine[] = [];
  const debits: NewLine[] = [];
  const subscriptionId = subscription.id;
  for (const each of formsOf(body['items'])) {
    const id = textOf(each['id']);
    const old = items.find((item) => item.id === id);
    if (id !== undefined && !old) throw noSuch('subscription item', id);
    const metadata = metadataOf(each['metadata']);
    if (old) {
      items = items.filter((item) => item !== old);
      credits.push({
        ...unusedTime(state, old.id, at),
        description: 'Unused time',
        metadata,
        of: {
          subscriptionId,
          itemId: old.id,
          priceId: old.price.id,
          isProration: true,
          start: at,
          end,
        },
      });
      if (flagOf(each['deleted'])) continue;
    }
    const price = priceOf(state, textOf(each['price']) ?? old?.price.id ?? '');
    if (intervalOf(price) !== intervalOf(first.price) && items.length > 0)
      throw invalid('All prices on a subscription must have the same `recurring.interval`.');
    if (items.some((item) => item.price.id === price.id))
      throw invalid(`A subscription item for price ${price.id} already exists.`);
    const isNewCycle = !isTrial && intervalOf(price) !== intervalOf(first.price);
    if (isNewCycle) anchor = at;
    const quantity = integerOf(each['quantity'], 'quantity') ?? old?.quantity ?? 1;
    const itemId = old?.id ?? state.newId('si');
    const itemEnd = isNewCycle ? periodEnd(at, at, intervalOf(price)) : end;
    items.push({
      id: itemId,
      price,
      quantity,
      metadata,
      current_period_start: isNewCycle ? at : start,
      current_period_end: itemEnd,
    });
    debits.push({
      amount: isNewCycle ? Number(price['unit_amount']) * quantity : share(price, quantity),
      description: 'Remaining time',
      metadata,
      of: {
        subscriptionId,
        itemId,
        priceId: price.id,
        isProration: true,
        start: at,
        end: itemEnd,
      },
    });
  }
  const discounts = shareDiscount(
    debits.map(({ amount }) => amount),
    coupon,
  );
  const lines = [
    ...credits,
    ...debits.map((line, index) => ({ ...line, amount: line.amount - (discounts[index] ?? 0) })),
  ];
  return { items, lines, ...(anchor !== undefined && { anchor }) };
}

/** Of the line that was paid last for an item: the share of its time that is left, as a negative amount. */
function unusedTime(
  state: SimulatorState,
  itemId: string,
  atSeconds: number,
): Pick<NewLine, 'amount' | 'credited'> {
  for (const invoice of state.list('invoice').toReversed()) {
    if (invoice['status'] === 'void') continue;
    const line = linesOf(invoice).findLast(
      (each) => subscriptionItemOf(each) === itemId && each.amount >= 0,
    );
    if (!line) continue;
    const { start, end } = line.period;
    const left = proratedAmount(netOf(line), end - atSeconds, end - start);
    return { amount: 0 - left, credited: { invoiceId: invoice.id, lineId: line.id } };
  }
  return { amount: 0 };
}

/**
 * The discount of a coupon on each of these amounts. Their sum is exactly the discount on the sum, and each is at most
 * its amount.
 */
export function shareDiscount(
  amounts: readonly number[],
  coupon: ProviderObject | null,
): readonly number[] {
  const sum = amounts.reduce((total, amount) => total + amount, 0);
  const discount = sum - reduced(sum, coupon);
  let before = 0;
  return amounts.map((amount) => {
    const off =
      proratedAmount(discount, before + amount, sum) - proratedAmount(discount, before, sum);
    before += amount;
    return off;
  });
}

/** The rest of an amount under a coupon. */
const reduced = (amount: number, coupon: ProviderObject | null): number =>
  discountedAmount(
    amount,
    coupon && {
      percentOff: coupon['percent_off'] as number | null,
      amountOff: coupon['amount_off'] as number | null,
    },
  );
