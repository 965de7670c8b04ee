/**
 * Ends a trial's subscription at the payment vendor once the account has gone to the Builder plan: the vendor would
 * charge it when the trial is over. One outbox entry for each downgrade, repeated until it is done.
 *
 * A plan that is bought meanwhile takes the trial's subscription over, so it is ended only while no purchase can
 * begin, by an account that has bought none. Before: `downgrade.ts`, `outbox-relay.ts`.
 */
import type { Vendor } from '@sluice/billing-vendor/port/vendor';
import type { CardChange } from '@sluice/database/billing/card-changes';
import type { OutboxEntry } from '@sluice/database/changes/outbox';

export interface EndTrialDependencies {
  readonly findVendorCustomer: (accountId: number) => Promise<string | undefined>;
  readonly isBuilderFromTrial: (accountId: number) => Promise<boolean>;
  /** The lock that keeps purchases from beginning, as a change of the card does. */
  readonly beginCardChange: (accountId: number, durationMs: number) => Promise<CardChange>;
  readonly endCardChange: (accountId: number, until: Date) => Promise<void>;
  readonly vendor: Pick<Vendor, 'findSubscription' | 'cancelSubscription'>;
  readonly vendorTimeoutMs: number;
}

/** Two calls, the search and the end, each repeated once where the connection breaks. */
const VENDOR_TRIES_MAX = 4;
const MARGIN_MS = 5_000;

/** @throws Error where the vendor did not take it, or a purchase runs; the entry is told again later. */
export async function endVendorTrial(
  deps: EndTrialDependencies,
  entry: Pick<OutboxEntry, 'outboxId' | 'attempt' | 'payload'>,
): Promise<void> {
  const accountId = Number(entry.payload['account_id']);
  const customerId = await deps.findVendorCustomer(accountId);
  if (customerId === undefined) return;
  const durationMs = VENDOR_TRIES_MAX * deps.vendorTimeoutMs + MARGIN_MS;
  const change = await deps.beginCardChange(accountId, durationMs);
  if (change.outcome !== 'begun') throw new Error(`the account is busy: ${change.outcome}`);
  try {
    if (!(await deps.isBuilderFromTrial(accountId))) return;
    const found = await deps.vendor.findSubscription(customerId);
    if (found.outcome !== 'ok') throw new Error(`the payment vendor: ${found.outcome}`);
    if (!found.value) return;
    const key = `outbox_${entry.outboxId}_${entry.attempt}`;
    const ended = await deps.vendor.cancelSubscription(found.value.subscriptionId, key);
    if (ended.outcome !== 'ok') throw new Error(`the payment vendor: ${ended.outcome}`);
  } finally {
    await deps.endCardChange(accountId, change.until);
  }
}
