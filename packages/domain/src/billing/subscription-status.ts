/**
 * What the state of its subscription at the payment provider means for an account: whether its plan is in force.
 * Pure; `worker/src/settlement/settle-subscription.ts` writes it down, and
 * `worker/src/settlement/end-purchase-workflow.ts` with a plan that was bought.
 *
 * | payment provider | account | plan |
 * |---|---|---|
 * | `active` | active | active |
 * | `trialing` | trialing | trialing |
 * | `past_due` (the card is tried again) | past_due | active |
 * | `unpaid`, `paused`, `incomplete` | paused | paused |
 * | `canceled`, `incomplete_expired`, none | active | canceled |
 */
export interface SubscriptionStanding {
  readonly accountStatus: 'active' | 'trialing' | 'past_due' | 'paused';
  readonly planStatus: 'active' | 'trialing' | 'paused' | 'canceled';
}

/** Why a subscription may not be changed now. */
export type SubscriptionDebt = 'payment_past_due' | 'payment_pending';

const PAST_DUE: ReadonlySet<string> = new Set(['past_due', 'unpaid', 'incomplete']);

/**
 * A change takes the rest of the period off its price. Of a period that is not paid that would be a gift, and the
 * payment provider does not look.
 *
 * @param latestInvoiceStatus - `open` of one that is `active`: a bank's payment is under way; `draft`: it is about to
 * be charged.
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

/** @param status - the payment provider's word. A word that is not known changes nothing: undefined. */
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
