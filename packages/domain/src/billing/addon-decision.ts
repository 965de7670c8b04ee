/**
 * Outcome of each price of an add-on purchase (`account-billing.md` §4).
 *
 * Add-on purchase rules 1–3. All or no prices are bought: one refused price refuses the purchase, and no price is
 * charged.
 */
import type { Catalogue, Interval } from './catalogue.ts';

export type AddonRefusal = 'other_price_held' | 'other_billing_cycle' | 'retired' | 'unknown_price';

export interface AddonItem {
  readonly sku: string;
  readonly result: 'added' | 'already_present' | 'refused';
  readonly reason: AddonRefusal | null;
}

export type AddonDecision =
  | { readonly outcome: 'refused'; readonly items: readonly AddonItem[] }
  | { readonly outcome: 'nothing-to-do'; readonly items: readonly AddonItem[] }
  | {
      readonly outcome: 'add';
      readonly items: readonly AddonItem[];
      readonly skus: readonly string[];
    };

/** A price that the account has bought once, and its add-on; the add-on is null if it is not known any more. */
export interface BoughtAddon {
  readonly sku: string;
  readonly addon: string | null;
}

/** Two prices of one add-on, in the order in which they are named; undefined if each add-on is named once. */
export function findTwoPrices(
  catalogue: Pick<Catalogue, 'addons'>,
  skus: readonly string[],
): readonly [string, string] | undefined {
  const addonOf = new Map(catalogue.addons.map(({ sku, addon }) => [sku, addon]));
  const firstOf = new Map<string, string>();
  for (const sku of skus) {
    const addon = addonOf.get(sku);
    if (addon === undefined) continue;
    const first = firstOf.get(addon);
    if (first !== undefined && first !== sku) return [first, sku];
    firstOf.set(addon, sku);
  }
  return undefined;
}

/** Held prices of unknown add-ons. Any other price may be of the same add-on, and would be charged beside it. */
export function unknownAddons(
  catalogue: Catalogue,
  held: ReadonlySet<string>,
  bought: readonly BoughtAddon[],
): string[] {
  const sold = new Set(catalogue.addons.map((each) => each.sku));
  return bought
    .filter(({ sku, addon }) => addon === null && held.has(sku) && !sold.has(sku))
    .map(({ sku }) => sku);
}

/**
 * A price that is already held is a no-op even if it is retired or on another cycle, so this is checked first.
 *
 * @param held - prices on the subscription now.
 * @param bought - earlier, perhaps at prices that the catalogue has no more.
 * @param interval - the subscription's billing cycle.
 */
export function decideAddons(
  catalogue: Catalogue,
  held: ReadonlySet<string>,
  bought: readonly BoughtAddon[],
  interval: Interval,
  skus: readonly string[],
): AddonDecision {
  const addonOf = new Map<string, string | null>(
    [...bought, ...catalogue.addons].map((each) => [each.sku, each.addon]),
  );
  // For two prices of one add-on in one purchase: the first already brings the add-on of the second.
  const taken = new Map<string, string>();
  for (const sku of held) {
    const addon = addonOf.get(sku);
    if (addon != null) taken.set(addon, sku);
  }
  const items = [...new Set(skus)].map((sku): AddonItem => {
    if (held.has(sku)) return { sku, result: 'already_present', reason: null };
    const price = catalogue.addons.find((each) => each.sku === sku);
    const reason = ((): AddonRefusal | null => {
      if (!price) return 'unknown_price';
      if (price.isRetired) return 'retired';
      if (taken.has(price.addon)) return 'other_price_held';
      if (price.interval !== interval) return 'other_billing_cycle';
      return null;
    })();
    if (reason !== null) return { sku, result: 'refused', reason };
    taken.set(price?.addon ?? sku, sku);
    return { sku, result: 'added', reason: null };
  });
  if (items.some((item) => item.result === 'refused')) {
    // The refused purchase adds no price, so no price may be reported as added.
    return { outcome: 'refused', items: items.filter((item) => item.result !== 'added') };
  }
  const added = items.filter((item) => item.result === 'added').map((item) => item.sku);
  return added.length === 0
    ? { outcome: 'nothing-to-do', items }
    : { outcome: 'add', items, skus: added };
}

/** For the person who bought. */
export function explainRefusal(items: readonly AddonItem[]): string {
  const reasons: Record<AddonRefusal, string> = {
    other_price_held: 'the account already has this add-on at another price',
    other_billing_cycle: 'it is billed on another cycle than the subscription',
    retired: 'it is not sold any more',
    unknown_price: 'there is no such add-on',
  };
  return items
    .filter((item) => item.result === 'refused')
    .map((item) => `${item.sku}: ${reasons[item.reason ?? 'unknown_price']}`)
    .join('; ');
}
