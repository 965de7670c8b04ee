/**
 * What the state of its subscription at the vendor means for an account: whether its plan is in force.
 * Pure; `worker/src/settle-subscription.ts` writes it down, and `worker/src/end-run.ts` with a plan that was bought.
 *
 * | vendor | account | plan |
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

/** @param status - the vendor's word. A word that is not known changes nothing: undefined. */
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
