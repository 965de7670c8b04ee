/**
 * Statements that touch the rows of several tenants on purpose. Each has its reason, and the tables in which it does.
 *
 * Routes send some of them: a caller without a tenant is looked up by a secret, an address or a code, a shared bound is
 * summed. Such a statement returns the tenant of the caller, numbers or a boolean, never the content of another tenant.
 */

const WORK =
  'finds due work of all tenants for a worker; what it returns is locked, and acted on, with its tenant';
const RETENTION = 'deletes what is older than the retention of the installation, whose it ever was';
const OPERATOR = 'is for the operator of the installation: `sluice`, `npm run verify`, `/metrics`';
const SECRETS =
  'encrypts or checks the secrets of the whole installation, in the start of a process';

const CALLER = 'finds the tenant of a caller by a secret, a domain or an e-mail address';
const DEVICE =
  'finds a device login by the hash of its code; it has no account until a user decides';

type CrossTenantStatement = readonly [reason: string, ...tables: string[]];

/** `folder/file.ts#function` → the reason, and the tables whose tenant it does not name. */
export const CROSS_TENANT_STATEMENTS: Readonly<Record<string, CrossTenantStatement>> = {
  'accounts/account-tokens.ts#findAccountToken': [
    CALLER,
    'accounts',
    'api_credentials',
    'service_accounts',
  ],
  'accounts/credentials.ts#findAppKey': [CALLER, 'accounts', 'api_credentials', 'environments'],
  'accounts/environments.ts#isOnlyWorkspace': [
    'looks for any other workspace of the installation; it returns one boolean',
    'environments',
  ],
  'accounts/signups.ts#findSignup': [CALLER, 'users'],
  'accounts/signups.ts#insertAccount': [
    'makes the tenant, whose number Postgres gives',
    'accounts',
  ],
  'accounts/workspace-keys.ts#listWorkspaceKeys': [
    'loads the write keys of all workspaces into intake, which finds the workspace of a call by them',
    'accounts',
    'api_credentials',
    'environments',
  ],
  'accounts/workspace-keys.ts#saveTestedKeys': [
    'changes the listed keys of many workspaces, each named by its workspace and number',
    'api_credentials',
  ],
  'audit/audit-log-exports.ts#clearExpiredExport': [RETENTION, 'audit_log_exports'],
  'audit/audit-log-exports.ts#listExportsToRun': [WORK, 'audit_log_exports'],
  'billing/account-plans.ts#listAccountsWithoutGrant': [WORK, 'accounts'],
  'billing/account-plans.ts#listEndedCredits': [WORK, 'credit_grants'],
  'billing/provider-customers.ts#findAccountOfCustomer': [
    'finds the account that an event of the payment provider is about, by the unique customer id',
    'vendor_customers',
  ],
  'billing/provider-customers.ts#listClosedCustomers': [WORK, 'accounts', 'vendor_customers'],
  'billing/purchase-workflows.ts#listDuePurchases': [WORK, 'runs'],
  'billing/purchase-workflows.ts#listPurchasesWithPaymentDue': [WORK, 'runs'],
  'billing/purchases-in-review.ts#countPurchasesInReview': [OPERATOR, 'runs'],
  'billing/purchases-in-review.ts#listPurchasesInReview': [OPERATOR, 'runs'],
  'billing/purchases-in-review.ts#lockPurchaseInReview': [OPERATOR, 'runs'],
  'credits/credit-holds.ts#listOverdueHolds': [WORK, 'credit_holds'],
  'credits/usage-watermarks.ts#closeUsageDays': [WORK, 'usage_watermarks'],
  'delivery/lane-alerts.ts#listUntoldEnvironments': [WORK, 'lanes'],
  'delivery/lane-backlog.ts#findLaneBacklog': [OPERATOR, 'delivery_log', 'lanes'],
  'delivery/lane-merges.ts#deleteEndedLaneMerges': [RETENTION, 'lane_merges'],
  'events/dead-lettered-operations.ts#countDeadLetteredOperations': [OPERATOR, 'parked_operations'],
  'events/dead-lettered-operations.ts#listDeadLetteredOperations': [OPERATOR, 'parked_operations'],
  'events/ingestion-issues.ts#deleteOldIssues': [RETENTION, 'ingestion_issues'],
  'events/message-deliveries.ts#listWorkspacesOfDelivery': [
    'an unsubscribe link has no credentials; it returns the numbers of workspaces, two at most',
    'message_deliveries',
  ],
  'feeds/feed-retention.ts#listFeedKeys': [WORK, 'webhooks'],
  'imports/import-chunks.ts#hasImportStorage': [
    'sums the bytes that the files of all workspaces take of one bound; it returns two sums',
    'imports',
  ],
  'imports/import-claims.ts#claimNext': [WORK, 'accounts', 'environments', 'imports'],
  'imports/import-upkeep.ts#deleteOldImports': [RETENTION, 'imports'],
  'imports/import-upkeep.ts#failAbandonedUploads': [WORK, 'imports'],
  'imports/import-upkeep.ts#failStuckImports': [WORK, 'imports'],
  'maintenance/minute-statistics.ts#deleteOldMinutes': [
    RETENTION,
    'delivery_minutes',
    'event_minutes',
  ],
  'maintenance/worker-processes.ts#releaseLanesOf': [
    'a worker process that was killed held lanes of many workspaces',
    'lanes',
  ],
  'people/deleted-identifiers.ts#forgetDeletedIdentifiers': [RETENTION, 'deleted_identifiers'],
  'people/irregular-identifiers.ts#listIrregularIdentifiers': [OPERATOR, 'person_identifiers'],
  'replays/replay-lanes.ts#claimReplay': [
    WORK,
    'accounts',
    'environments',
    'lanes',
    'webhook_replays',
    'webhooks',
  ],
  'replays/replays.ts#clearReplays': [RETENTION, 'webhook_replays'],
  'users/console-sessions.ts#clearConsoleSessions': [RETENTION, 'console_sessions'],
  'users/device-logins.ts#clearDeviceLogins': [RETENTION, 'device_logins'],
  'users/device-logins.ts#decideDeviceLogin': [DEVICE, 'device_logins'],
  'users/device-logins.ts#findWaitingDevice': [DEVICE, 'device_logins'],
  'users/device-logins.ts#lockOwnersOf': [DEVICE, 'device_logins'],
  'users/device-logins.ts#pollIn': [DEVICE, 'device_logins'],
  'users/device-logins.ts#startDeviceLogin': [DEVICE, 'device_logins'],
  'users/identity-providers.ts#findProviderOfDomain': [
    CALLER,
    'accounts',
    'identity_provider_domains',
    'identity_providers',
  ],
  'users/programs.ts#endProgramOfToken': [CALLER, 'api_credentials'],
  'users/provider-domains.ts#replaceDomains': [
    'takes a proven domain from an account that is closed',
    'accounts',
    'identity_provider_domains',
  ],
  'users/provider-domains.ts#takeDueDomains': [WORK, 'identity_provider_domains'],
  'users/provider-openings.ts#clearProviderSignIns': [RETENTION, 'provider_sign_ins'],
  'users/users-of-address.ts#findUsersByEmail': [CALLER, 'accounts', 'users'],
  'users/sign-in-codes.ts#findSignIn': [CALLER, 'accounts', 'users'],
  'users/users.ts#findUserOfEmail': [CALLER, 'users'],
  'verify/verify-audit-chains.ts#listAuditedAccounts': [OPERATOR, 'accounts'],
  'verify/verify-credits.ts#countCreditGrants': [OPERATOR, 'credit_grants'],
  'verify/verify-credits.ts#listCreditDifferences': [OPERATOR, 'credit_entries', 'credit_grants'],
  'verify/verify-people.ts#listPeopleCounts': [OPERATOR, 'people', 'people_counts'],
  'verify/verify-purchases.ts#hasProviderCustomers': [OPERATOR, 'vendor_customers'],
  'verify/verify-purchases.ts#listBookedPurchases': [OPERATOR, 'runs'],
  'verify/verify-purchases.ts#listBookedSubscribers': [OPERATOR, 'accounts', 'vendor_customers'],
  'verify/verify-usage.ts#countUsage': [OPERATOR, 'inbox_preview_days', 'inbox_preview_runs'],
  'verify/verify-usage.ts#listUsageCreditDifferences': [
    OPERATOR,
    'credit_entries',
    'inbox_preview_runs',
  ],
  'verify/verify-usage.ts#listUsageDayDifferences': [
    OPERATOR,
    'inbox_preview_days',
    'inbox_preview_runs',
    'usage_watermarks',
  ],
  'webhooks/encrypted-secrets.ts#listEncryptedSamples': [
    SECRETS,
    'environments',
    'identity_providers',
    'second_factors',
    'users',
    'webhooks',
  ],
  'webhooks/encrypted-secrets.ts#listSecrets': [
    SECRETS,
    'environments',
    'identity_providers',
    'second_factors',
    'users',
    'webhooks',
  ],
  'webhooks/encrypted-secrets.ts#listSecretsWithout': [
    SECRETS,
    'environments',
    'identity_providers',
    'second_factors',
    'users',
    'webhooks',
  ],
  'webhooks/encrypted-secrets.ts#replaceSecrets': [SECRETS, 'environments'],
  'webhooks/event-types.ts#listEventTypeRevisions': [
    'is how intake learns whose event types have changed; it returns numbers of workspaces and of revisions',
    'event_type_sets',
  ],
  'webhooks/failing-webhooks.ts#listOverdueWebhooks': [WORK, 'lanes', 'webhooks'],
  'webhooks/portal-links.ts#clearPortalLinks': [RETENTION, 'portal_links'],
  'webhooks/signing-keys.ts#promoteDueSigningKeys': [WORK, 'webhooks'],
  'webhooks/webhook-endpoints.ts#listWebhookEndpoints': [
    'judges the addresses of all webhooks when a worker starts; it returns no content',
    'webhooks',
  ],
  'webhooks/webhooks.ts#clearDeletedWebhook': [WORK, 'webhooks'],
};

const READS_WORKSPACE =
  'is about the one workspace of a call or of a job, which its token or its row named before';

/**
 * Statements that find a row of `environments` by its workspace, without its account. Workspaces have numbers that are
 * unique over the installation, and each other table of such a statement is named by its tenant.
 */
export const STATEMENTS_OF_WORKSPACES: Readonly<Record<string, string>> = {
  'accounts/environments.ts#findAccountOf': READS_WORKSPACE,
  'accounts/environments.ts#findWorkspaceTotals': READS_WORKSPACE,
  'accounts/environments.ts#lockEnvironment': READS_WORKSPACE,
  'delivery/lane-states.ts#findDisabling': READS_WORKSPACE,
  'feeds/feed-changes.ts#insertFeed': READS_WORKSPACE,
  'imports/import-claims.ts#advanceImport': READS_WORKSPACE,
  'webhooks/portal-links.ts#findPortalOrigins': READS_WORKSPACE,
  'webhooks/portal-links.ts#findWorkspaceOrigins': READS_WORKSPACE,
  'webhooks/portal-sessions.ts#findPortalSession': READS_WORKSPACE,
  'webhooks/portal-sessions.ts#openPortalSession': READS_WORKSPACE,
  'webhooks/signing-key-changes.ts#replaceWorkspaceSecret': READS_WORKSPACE,
  'webhooks/webhooks.ts#insertWebhook': READS_WORKSPACE,
};
