/**
 * Effect of a subscription's provider state on its account and plan.
 *
 * Pure; `worker/src/settlement/settle-subscription.ts` writes it down, and
 * `worker/src/settlement/end-purchase-workflow.ts` with a plan that was bought.
 *
 * | payment provider | account | plan |
 * |---|---|---|
 * | `active` | active | active |
 * | `trialing` | trialing | trialing |
 * | `past_due` (the card is tried again) | past_due | active |
 * | `unpaid`, `paused`, `incomplete` | paused | paused |
 * | `canceled`, `incomplete_expired`, no subscription | active | canceled |
 */
export interface SubscriptionStanding {
  readonly accountStatus: 'active' | 'trialing' | 'past_due' | 'paused';
  readonly planStatus: 'active' | 'trialing' | 'paused' | 'canceled';
}

/** Why a subscription may not be changed now. */
export type SubscriptionDebt = 'payment_past_due' | 'payment_pending';

const PAST_DUE: ReadonlySet<string> = new Set(['past_due', 'unpaid', 'incomplete']);

/**
 * A change deducts the price of the rest of the period. If the period is unpaid that would be a gift, and the payment
 * provider does not check it.
 *
 * @param latestInvoiceStatus - `open` of an `active` subscription: a bank's payment is under way. `draft`: the invoice
 * is about to be charged.
 */
export function debtOf(
  status: string,
  latestInvoiceStatus: string | null,
): SubscriptionDebt | undefined {
  if (PAST_DUE.has(status)) return 'payment_past_due';
  return latestInvoiceStatus === 'open' || latestInvoiceStatus === 'draft'
    ? 'payment_pending'
    : undefined;
}

/** @param status - the payment provider's word. Undefined for an unknown word, which has no effect. */
export function standingOf(status: string): SubscriptionStanding | undefined {
  switch (status) {
    case 'active':
      return { accountStatus: 'active', planStatus: 'active' };
    case 'trialing':
      return { accountStatus: 'trialing', planStatus: 'trialing' };
    case 'past_due':
      return { accountStatus: 'past_due', planStatus: 'active' };
    case 'unpaid':
    case 'paused':
    case 'incomplete':
      return { accountStatus: 'paused', planStatus: 'paused' };
    case 'canceled':
    case 'incomplete_expired':
      return { accountStatus: 'active', planStatus: 'canceled' };
    default:
      return undefined;
  }
}
