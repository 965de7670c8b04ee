/**
 * Brings an account to its subscription's state at the payment provider.
 *
 * The state is renewed, past due, paused or ended. The subscription is read as it is now, so that events may come
 * twice, late and in any order. It is read again after the write, so that after two events at the same time the newer state
 * stays.
 *
 * The checkout decides about the account's plan (`end-purchase-workflow.ts`), not the subscription.
 */
import { isDeepStrictEqual } from 'node:util';
import { updateAccountStanding } from '@sluice/database/billing/account-plans';
import { recordChange } from '@sluice/database/changes/record-change';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { findAccountOfCustomer } from '@sluice/database/billing/provider-customers';
import { standingOf, type SubscriptionStanding } from '@sluice/domain/billing/subscription-status';
import type { PaymentProvider, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';

export interface SettleSubscriptionDeps {
  readonly database: Database;
  readonly provider: PaymentProvider;
  readonly now: () => number;
}

/** @returns false if it has to be looked at again. */
export async function settleSubscription(
  deps: SettleSubscriptionDeps,
  subscriptionId: string,
): Promise<boolean> {
  const found = await deps.provider.readSubscription(subscriptionId);
  if (found.outcome !== 'ok') return found.outcome !== 'unknown';
  if (!found.value) return true;
  const { customerId } = found.value;
  const accountId = await findAccountOfCustomer(deps.database, customerId);
  // Not a customer of ours.
  if (accountId === undefined) return true;
  const read = await readStanding(deps.provider, customerId);
  if (read.outcome !== 'ok') return read.outcome !== 'unknown';
  const standing = read.value;
  if (!standing) return true;
  await deps.database.transaction().execute(async (transaction) => {
    await writeStanding(transaction, accountId, standing, deps.now());
  });
  return isDeepStrictEqual(await readStanding(deps.provider, customerId), read);
}

/** With its entry of the audit log, if there is a change. */
export async function writeStanding(
  transaction: Transaction,
  accountId: number,
  standing: SubscriptionStanding,
  nowMs: number,
): Promise<void> {
  const changed = await updateAccountStanding(transaction, accountId, standing, nowMs);
  if (!changed) return;
  const { before, after } = changed;
  await recordChange(
    transaction,
    accountId,
    { actor: { type: 'system' } },
    {
      objectType: 'account',
      objectId: accountId,
      before: { status: before.accountStatus, plan: { status: before.planStatus } },
      after: { status: after.accountStatus, plan: { status: after.planStatus } },
    },
    nowMs,
  );
}

/** Of the subscription in force, for an event about any subscription. */
async function readStanding(
  provider: PaymentProvider,
  customerId: string,
): Promise<ProviderResult<SubscriptionStanding | undefined>> {
  const found = await provider.findSubscription(customerId);
  if (found.outcome !== 'ok') return found;
  return { outcome: 'ok', value: standingOf(found.value?.status ?? 'canceled') };
}
