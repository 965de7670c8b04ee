/**
 * Ends the subscriptions of closed accounts at the payment provider.
 *
 * A subscription there is independent of our accounts, and would be charged for ever. An account is closed by a
 * statement of its operator, without an event, so this looks for closed accounts. The account's plan ends with its
 * subscription.
 *
 * All subscriptions end, also ones that a person made at the payment provider by hand. Run it every minute, on any
 * number of workers: an ended subscription stays so. A closed account without further subscriptions is soon not asked
 * about any more, unless it is opened and closed again.
 */
import type { PaymentProvider, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import type { Database } from '@sluice/database/connection/connection';
import { listPendingPurchases } from '@sluice/database/billing/purchase-workflows';
import {
  isAccountClosed,
  listClosedCustomers,
  lockClosedOnPlan,
  noteSubscriptionsEnded,
  type ClosedCustomer,
} from '@sluice/database/billing/provider-customers';
import type { Logger } from '@sluice/platform/process/logger';
import { standingOf } from '@sluice/domain/billing/subscription-status';
import { eachAsked } from '../process/each-alone.ts';
import { writeStanding } from '../settlement/settle-subscription.ts';

export interface EndClosedSubscriptionsDeps {
  readonly database: Database;
  readonly provider: Pick<PaymentProvider, 'findSubscription' | 'cancelSubscription'>;
  readonly now: () => number;
  readonly logger: Logger;
}

/** The rest waits for the next time. */
const ACCOUNTS_MAX = 1_000;
/** Of one account at one time: we make one, by hand there may be more. */
const SUBSCRIPTIONS_MAX = 10;

/** @param isStopping - asked before each account: the rest waits for the next time. */
export async function endClosedSubscriptions(
  deps: EndClosedSubscriptionsDeps,
  isStopping: () => boolean = () => false,
): Promise<void> {
  await eachAsked(
    deps.logger,
    'end the subscriptions of a closed account',
    await listClosedCustomers(deps.database, deps.now(), ACCOUNTS_MAX),
    (customer) => endAll(deps, customer),
    isStopping,
  );
}

/** @returns the last answer of the payment provider. */
async function endAll(
  { database, provider, now, logger }: EndClosedSubscriptionsDeps,
  { accountId, customerId }: ClosedCustomer,
): Promise<ProviderResult<unknown>['outcome']> {
  // Before the payment provider is asked: a purchase that was under way may make a subscription until it has ended. New
  // purchases cannot begin.
  const pending = await listPendingPurchases(database, accountId);
  const note = (haveEnded: boolean) =>
    noteSubscriptionsEnded(database, accountId, haveEnded && pending.length === 0, now());
  for (let count = 0; count < SUBSCRIPTIONS_MAX; count++) {
    const found =
      customerId === null
        ? ({ outcome: 'ok', value: null } as const)
        : await provider.findSubscription(customerId);
    if (found.outcome !== 'ok') return found.outcome;
    if (!found.value) {
      if (pending.length === 0) await endPlan(database, accountId, now());
      await note(true);
      return 'ok';
    }
    const { subscriptionId } = found.value;
    await note(false);
    // It may have been opened since, and pay for this one again. Not locked: its operator would wait for the payment
    // provider.
    if (!(await isAccountClosed(database, accountId))) return 'ok';
    // A key of its own each time: to end twice is to end once, and an answer that the payment provider keeps would stay
    // wrong.
    const key = `account_${accountId}:closed:${subscriptionId}:${now()}`;
    const ended = await provider.cancelSubscription(subscriptionId, key);
    if (ended.outcome !== 'ok') return ended.outcome;
    logger.info({ accountId, subscriptionId }, 'the subscription of a closed account was ended');
  }
  return 'ok';
}

/**
 * So an account that is opened again has no plan. The payment provider's event has the same effect, but it may be lost,
 * or come to a version that leaves a closed account as it is.
 */
async function endPlan(database: Database, accountId: number, nowMs: number): Promise<void> {
  const standing = standingOf('canceled');
  if (!standing) return;
  await database.transaction().execute(async (transaction) => {
    if (await lockClosedOnPlan(transaction, accountId))
      await writeStanding(transaction, accountId, standing, nowMs);
  });
}
