/**
 * Files whose mutants `npm run mutate -- --all` runs: money, delivery queues, the disk buffer, identity and durability.
 * Of the pure ones every mutant is run, of the others a sample by the seed.
 */
export interface GuardedFile {
  readonly path: string;
  readonly isWhole: boolean;
}

const WHOLE = [
  'domain/src/billing/credit-ledger.ts',
  'domain/src/billing/purchase-content.ts',
  'domain/src/billing/unused-time.ts',
  'domain/src/billing/purchase-workflow.ts',
  'domain/src/billing/workflow-steps.ts',
  'domain/src/values/money.ts',
  'domain/src/apply/merge-people.ts',
  'domain/src/apply/find-person.ts',
  'domain/src/apply/change-identifiers.ts',
  'domain/src/state/held-identifiers.ts',
  'domain/src/delivery/lane.ts',
  'domain/src/delivery/delivery-schedule.ts',
  'domain/src/value-rules/boolean-rule.ts',
  'domain/src/value-rules/identifier-rule.ts',
  'domain/src/value-rules/iso-instant.ts',
  'domain/src/value-rules/number-rule.ts',
  'domain/src/value-rules/text-search.ts',
  'domain/src/value-rules/time-rule.ts',
  'domain/src/value-rules/value-rules.ts',
  'domain/src/value-rules/verdict.ts',
] as const;

const SAMPLED = [
  'worker/src/scheduling/fair-permits.ts',
  'worker/src/scheduling/fair-queueing.ts',
  'platform/src/consumers/queue-watch.ts',
  'platform/src/redis/redis-durability.ts',
  'platform/src/redis/replica-confirmation.ts',
  'platform/src/queue/commit-batch-writer.ts',
  'api/src/http/idempotency.ts',
  'api/src/auth/account-guard.ts',
  'database/src/changes/idempotency-keys.ts',
  'database/src/credits/credits.ts',
  'database/src/credits/credit-transactions.ts',
  'database/src/credits/credit-holds.ts',
  'database/src/billing/purchase-workflows.ts',
  'database/src/billing/purchase-steps.ts',
  'database/src/billing/purchases-in-review.ts',
  'database/src/billing/same-purchases.ts',
  'database/src/billing/earlier-purchases.ts',
  'database/src/events/commit-batches.ts',
  'database/src/events/commit-batch-parts.ts',
  'intake/src/commit/batch-committer.ts',
  'intake/src/groups/commit-group.ts',
  'intake/src/commit/disk-buffer.ts',
  'intake/src/stream/commit-slots.ts',
  'worker/src/events/commit-batch-processor.ts',
  'worker/src/events/process-commit-batch.ts',
  'worker/src/lane/lane-lease.ts',
  'worker/src/lane/lane-drain.ts',
  'worker/src/settlement/refuse-unsold.ts',
  'worker/src/settlement/settle-bank-payment.ts',
  'worker/src/settlement/settle-invoice.ts',
  'worker/src/settlement/settle-provider-events.ts',
  'worker/src/settlement/settle-reversal.ts',
  'worker/src/settlement/settle-subscription.ts',
] as const;

/** The quickest first: a run that ends by its time has most of the files. */
export const GUARDED_FILES: readonly GuardedFile[] = [
  ...WHOLE.map((path) => ({ path: `packages/${path}`, isWhole: true })),
  ...SAMPLED.map((path) => ({ path: `packages/${path}`, isWhole: false })),
];
