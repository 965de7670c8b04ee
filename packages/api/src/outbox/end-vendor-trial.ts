/**
 * Ends a trial's subscription at the payment vendor once the account has gone to the Builder plan: the vendor would
 * charge it when the trial is over. One outbox entry for each downgrade, repeated until it is done.
 *
 * A plan that is bought meanwhile takes the trial's subscription over, so it is ended only while no purchase can
 * begin, by an account that has bought none. Before: `downgrade.ts`, `outbox-relay.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { Vendor } from '@sluice/billing-vendor/port/vendor';
import { isBuilderFromTrial } from '@sluice/database/billing/account-plans';
import { beginCardChange, endCardChange } from '@sluice/database/billing/card-changes';
import { findVendorCustomer } from '@sluice/database/billing/vendor-customers';
import type { OutboxEntry } from '@sluice/database/changes/outbox';

export interface EndTrialEffects {
  readonly database: Database;
  readonly vendor: Pick<Vendor, 'findSubscription' | 'cancelSubscription'>;
  readonly vendorTimeoutMs: number;
}

/** Two calls, the search and the end, each repeated once where the connection breaks. */
const VENDOR_TRIES_MAX = 4;
const MARGIN_MS = 5_000;

/** @throws Error where the vendor did not take it, or a purchase runs; the entry is told again later. */
export async function endVendorTrial(
  { database, vendor, vendorTimeoutMs }: EndTrialEffects,
  entry: Pick<OutboxEntry, 'outboxId' | 'attempt' | 'payload'>,
): Promise<void> {
  const accountId = Number(entry.payload['account_id']);
  const customerId = await findVendorCustomer(database, accountId);
  if (customerId === undefined) return;
  const durationMs = VENDOR_TRIES_MAX * vendorTimeoutMs + MARGIN_MS;
  // The lock that keeps purchases from beginning, as a change of the card does.
  const change = await beginCardChange(database, accountId, durationMs);
  if (change.outcome !== 'begun') throw new Error(`the account is busy: ${change.outcome}`);
  try {
    if (!(await isBuilderFromTrial(database, accountId))) return;
    const found = await vendor.findSubscription(customerId);
    if (found.outcome !== 'ok') throw new Error(`the payment vendor: ${found.outcome}`);
    if (!found.value) return;
    const key = `outbox_${entry.outboxId}_${entry.attempt}`;
    const ended = await vendor.cancelSubscription(found.value.subscriptionId, key);
    if (ended.outcome !== 'ok') throw new Error(`the payment vendor: ${ended.outcome}`);
  } finally {
    await endCardChange(database, accountId, change.until);
  }
}
