/**
 * Ends at the vendor what closed accounts still subscribe to: a subscription knows nothing of our accounts, and would
 * be charged for ever. An account is closed by a statement of its operator, so nobody is told; it is looked for.
 *
 * Whatever there is is ended, also what somebody made at the vendor by hand. Run it every minute, on any number of
 * workers: one that has ended stays so. An account of which nothing is left is not asked about again, unless it is
 * opened and buys a plan.
 */
import type { Vendor } from '@sluice/billing-vendor/vendor';
import type { Database } from '@sluice/database/connection';
import { listPendingRuns } from '@sluice/database/runs';
import {
  listClosedCustomers,
  noteSubscriptionsEnded,
  type ClosedCustomer,
} from '@sluice/database/vendor-customers';
import type { Logger } from '@sluice/platform/logger';
import { eachAlone } from './each-alone.ts';

export interface EndClosedSubscriptionsDeps {
  readonly database: Database;
  readonly vendor: Pick<Vendor, 'findSubscription' | 'cancelSubscription'>;
  readonly now: () => number;
  readonly logger: Logger;
}

const BATCH_SIZE = 100;
/** Of one account at one time: we make one, by hand there may be more. */
const SUBSCRIPTIONS_MAX = 10;

export async function endClosedSubscriptions(deps: EndClosedSubscriptionsDeps): Promise<void> {
  const task = 'end the subscriptions of a closed account';
  for (let after = 0; ;) {
    const customers = await listClosedCustomers(deps.database, after, BATCH_SIZE);
    await eachAlone(deps.logger, task, customers, (customer) => endAll(deps, customer));
    const last = customers.at(-1);
    if (!last || customers.length < BATCH_SIZE) return;
    after = last.accountId;
  }
}

async function endAll(
  { database, vendor, now, logger }: EndClosedSubscriptionsDeps,
  { accountId, customerId }: ClosedCustomer,
): Promise<void> {
  // Before the vendor is asked: a purchase that was under way may make one until it has ended. None begins any more.
  const pending = await listPendingRuns(database, accountId);
  for (let count = 0; count < SUBSCRIPTIONS_MAX; count++) {
    const found = await vendor.findSubscription(customerId);
    if (found.outcome !== 'ok') throw new Error(`the payment vendor: ${found.outcome}`);
    if (!found.value) {
      if (pending.length === 0) await noteSubscriptionsEnded(database, accountId, now());
      return;
    }
    const { subscriptionId } = found.value;
    // A key of its own each time: to end twice is to end once, and an answer that the vendor keeps would stay wrong.
    const key = `account_${accountId}:closed:${subscriptionId}:${now()}`;
    const ended = await vendor.cancelSubscription(subscriptionId, key);
    if (ended.outcome !== 'ok') throw new Error(`the payment vendor: ${ended.outcome}`);
    logger.info({ accountId, subscriptionId }, 'the subscription of a closed account was ended');
  }
}
