/**
 * Statements that touch the rows of several tenants on purpose. Each has its reason. No route of a tenant sends one.
 */

const WORK =
  'finds due work of all tenants for a worker; what it returns is locked, and acted on, with its tenant';
const RETENTION = 'deletes what is older than the retention of the installation, whose it ever was';
const OPERATOR = 'is for the operator of the installation: `sluice`, `npm run verify`, `/metrics`';
const SECRETS =
  'encrypts or checks the secrets of the whole installation, in the start of a process';

export const CROSS_TENANT_STATEMENTS: Readonly<Record<string, string>> = {
  'users/console-sessions.ts#clearConsoleSessions': RETENTION,
  'users/provider-openings.ts#clearProviderSignIns': RETENTION,
  'audit/audit-log-exports.ts#listExportsToRun': WORK,
  'audit/audit-log-exports.ts#clearExpiredExport': RETENTION,
  'billing/account-plans.ts#listEndedCredits': WORK,
  'billing/purchase-workflows.ts#listPurchasesWithPaymentDue': WORK,
  'billing/purchase-workflows.ts#listDuePurchases': WORK,
  'billing/purchases-in-review.ts#listPurchasesInReview': OPERATOR,
  'billing/purchases-in-review.ts#countPurchasesInReview': OPERATOR,
  'billing/purchases-in-review.ts#lockPurchaseInReview': OPERATOR,
  'credits/credit-holds.ts#listOverdueHolds': WORK,
  'credits/usage-watermarks.ts#closeUsageDays': WORK,
  'delivery/lane-alerts.ts#listUntoldEnvironments': WORK,
  'delivery/lane-backlog.ts#findLaneBacklog': OPERATOR,
  'delivery/lane-merges.ts#deleteEndedLaneMerges': RETENTION,
  'events/dead-lettered-operations.ts#listDeadLetteredOperations': OPERATOR,
  'events/dead-lettered-operations.ts#countDeadLetteredOperations': OPERATOR,
  'events/ingestion-issues.ts#deleteOldIssues': RETENTION,
  'events/message-deliveries.ts#listWorkspacesOfDelivery':
    'an unsubscribe link has no credentials; it returns the numbers of workspaces, two at most',
  'feeds/feed-retention.ts#listFeedKeys': WORK,
  'imports/import-chunks.ts#hasImportStorage':
    'sums the bytes that the files of all workspaces take of one bound; it returns two sums',
  'imports/imports.ts#claimNext': WORK,
  'imports/imports.ts#failAbandonedUploads': WORK,
  'imports/imports.ts#failStuckImports': WORK,
  'imports/imports.ts#deleteOldImports': RETENTION,
  'maintenance/minute-statistics.ts#deleteOldMinutes': RETENTION,
  'maintenance/worker-processes.ts#releaseLanesOf':
    'a worker process that was killed held lanes of many workspaces',
  'people/deleted-identifiers.ts#forgetDeletedIdentifiers': RETENTION,
  'people/irregular-identifiers.ts#listIrregularIdentifiers': OPERATOR,
  'replays/replays.ts#clearReplays': RETENTION,
  'verify/verify-credits.ts#listCreditDifferences': OPERATOR,
  'verify/verify-credits.ts#countCreditGrants': OPERATOR,
  'verify/verify-people.ts#listPeopleCounts': OPERATOR,
  'verify/verify-purchases.ts#listBookedPurchases': OPERATOR,
  'verify/verify-usage.ts#listUsageDayDifferences': OPERATOR,
  'verify/verify-usage.ts#listUsageCreditDifferences': OPERATOR,
  'verify/verify-usage.ts#countUsage': OPERATOR,
  'webhooks/encrypted-secrets.ts#listSecrets': SECRETS,
  'webhooks/event-types.ts#listEventTypeRevisions':
    'tells intake whose event types have changed; it returns numbers of workspaces and of revisions',
  'webhooks/failing-webhooks.ts#listOverdueWebhooks': WORK,
  'webhooks/portal-links.ts#clearPortalLinks': RETENTION,
  'webhooks/encrypted-secrets.ts#listSecretsWithout': SECRETS,
  'webhooks/encrypted-secrets.ts#listEncryptedSamples': SECRETS,
  'webhooks/signing-keys.ts#promoteDueSigningKeys': WORK,
  'webhooks/webhook-endpoints.ts#listWebhookEndpoints':
    'judges the addresses of all webhooks when a worker starts; it returns no content',
  'webhooks/webhooks.ts#clearDeletedWebhook': WORK,
};
