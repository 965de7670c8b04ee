/**
 * Ends a trial's subscription at the payment provider.
 *
 * It does so once the account has gone to the Builder plan: the payment provider would charge it when the trial is
 * over. One outbox entry for each downgrade, repeated until it is done.
 *
 * A plan that is bought meanwhile takes the trial's subscription over. So the trial is ended only while no purchase can
 * begin, and only for an account that has bought no plan. Before: `downgrade.ts`, `outbox-relay.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { isBuilderFromTrial } from '@sluice/database/billing/account-plans';
import { beginCardChange, endCardChange } from '@sluice/database/billing/card-changes';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import type { OutboxEntry } from '@sluice/database/changes/outbox';

export interface EndTrialEffects {
  readonly database: Database;
  readonly provider: Pick<PaymentProvider, 'findSubscription' | 'cancelSubscription'>;
  readonly providerTimeoutMs: number;
}

/** Two calls, the search and the end, each repeated once if the connection breaks. */
const PROVIDER_TRIES_MAX = 4;
const MARGIN_MS = 5_000;

/** @throws Error if the payment provider did not take it, or a purchase runs; the entry is sent again later. */
export async function endProviderTrial(
  { database, provider, providerTimeoutMs }: EndTrialEffects,
  entry: Pick<OutboxEntry, 'outboxId' | 'attempt' | 'payload'>,
): Promise<void> {
  const accountId = Number(entry.payload['account_id']);
  const customerId = await findProviderCustomer(database, accountId);
  if (customerId === undefined) return;
  const durationMs = PROVIDER_TRIES_MAX * providerTimeoutMs + MARGIN_MS;
  // The lock that keeps purchases from beginning, as a change of the card does.
  const change = await beginCardChange(database, accountId, durationMs);
  if (change.outcome !== 'begun') throw new Error(`the account is busy: ${change.outcome}`);
  try {
    if (!(await isBuilderFromTrial(database, accountId))) return;
    const found = await provider.findSubscription(customerId);
    if (found.outcome !== 'ok') throw new Error(`the payment provider answered: ${found.outcome}`);
    if (!found.value) return;
    const key = `outbox_${entry.outboxId}_${entry.attempt}`;
    const ended = await provider.cancelSubscription(found.value.subscriptionId, key);
    if (ended.outcome !== 'ok') throw new Error(`the payment provider answered: ${ended.outcome}`);
  } finally {
    await endCardChange(database, accountId, change.until);
  }
}
