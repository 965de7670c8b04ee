/** What a subscription of the simulated payment provider is made of, and what a change of that would cost. */
import { discountedAmount, proratedAmount } from '@sluice/domain/values/money';
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

/** What a change of items would cost, and the items after it. */
export interface Change {
  readonly items: readonly Item[];
  readonly lines: readonly {
    amount: number;
    description: string;
    metadata: Record<string, string>;
  }[];
  /** Where a new cycle begins with it. */
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

export function changeItems(
  state: SimulatorState,
  subscription: ProviderObject,
  body: Form,
): Change {
  const existing = itemsOf(subscription);
  const [first] = existing;
  if (!first) throw invalid('The subscription has no items.');
  const { current_period_start: start, current_period_end: end } = first;
  const at = integerOf(body['proration_date'], 'proration_date') ?? state.nowSeconds();
  // A trial goes on whatever is changed, and costs nothing.
  const isTrial = subscription['status'] === 'trialing';
  const share = (price: ProviderObject, quantity: number): number =>
    isTrial ? 0 : proratedAmount(Number(price['unit_amount']) * quantity, end - at, end - start);

  let items = [...existing];
  let anchor: number | undefined;
  const lines: { amount: number; description: string; metadata: Record<string, string> }[] = [];
  for (const each of formsOf(body['items'])) {
    const id = textOf(each['id']);
    const old = items.find((item) => item.id === id);
    if (id !== undefined && !old) throw noSuch('subscription item', id);
    const metadata = metadataOf(each['metadata']);
    if (old) {
      items = items.filter((item) => item !== old);
      lines.push({ amount: -share(old.price, old.quantity), description: 'Unused time', metadata });
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
    items.push({
      id: old?.id ?? state.newId('si'),
      price,
      quantity,
      metadata,
      current_period_start: isNewCycle ? at : start,
      current_period_end: isNewCycle ? periodEnd(at, at, intervalOf(price)) : end,
    });
    lines.push({
      amount: isNewCycle ? Number(price['unit_amount']) * quantity : share(price, quantity),
      description: 'Remaining time',
      metadata,
    });
  }
  return { items, lines, ...(anchor !== undefined && { anchor }) };
}

/** What is left of an amount under a coupon. */
export const reduced = (amount: number, coupon: ProviderObject | null): number =>
  discountedAmount(
    amount,
    coupon && {
      percentOff: coupon['percent_off'] as number | null,
      amountOff: coupon['amount_off'] as number | null,
    },
  );
