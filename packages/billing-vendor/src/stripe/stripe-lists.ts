/** Lists of the payment provider, and objects that are not in them. */
import { Stripe } from 'stripe';
import type { ProviderPage } from '../port/payment-provider.ts';

/** The most that the payment provider gives at once. */
export const LOOKUP_COUNT_MAX = 100;

export const part = (after: string | undefined) => ({
  limit: LOOKUP_COUNT_MAX,
  ...(after !== undefined && { starting_after: after }),
});

export function pageOf<Wire extends { id?: string }, Item>(
  list: { readonly data: readonly Wire[]; readonly has_more: boolean },
  toItem: (wire: Wire) => Item,
): ProviderPage<Item> {
  const next = list.has_more ? list.data.at(-1)?.id : undefined;
  return { items: list.data.map((each) => toItem(each)), ...(next !== undefined && { next }) };
}

export const isMissing = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing';
