/**
 * Rights of each service's database role, table by table.
 *
 * - `sluice_intake` knows keys by their hashes and has no right to append: events go to the broker.
 * - `sluice_worker` applies events, delivers, and settles purchases. Sessions and sign-in are not its.
 * - `sluice_api` serves accounts. It starts purchases and cannot settle one: it writes no state or result of a purchase,
 *   no receipt, no bought credits and no plan but Builder after a trial. Rights to columns give that, and triggers if
 *   the values decide (`migrations/0076_settled_by_worker.ts`). The amount of an allowance and the Builder plan are the
 *   workers' catalogue's (`migrations/0077_catalogue_plans.ts`).
 *
 * A test holds them to the statements of each service (`scripts/test/service-statements.test.ts`). Tables with rights to
 * columns stay on the coordinator of Citus, or `listTablesWithoutColumnGrants` lists them.
 */
export const DATABASE_ROLES = ['sluice_intake', 'sluice_worker', 'sluice_api'] as const;
export type DatabaseRole = (typeof DATABASE_ROLES)[number];

/** All rights that a statement may need. */
export const ALL = 'select, insert, update, delete';
const READ = 'select';
/** Rights of every process: for its reads at its start, and for its heartbeat. */
const OF_EVERY_PROCESS = {
  installation: 'select, insert, update',
  kysely_migration: READ,
  schema_requirements: READ,
  process_heartbeats: ALL,
} as const;

/** Table → privileges, with columns if not all of them. */
type Grants = Readonly<Record<string, string>>;

export const GRANTS: Readonly<Record<DatabaseRole, Grants>> = {
  sluice_intake: {
    ...OF_EVERY_PROCESS,
    accounts: 'select (account_id, status)',
    api_credentials: `select (account_id, environment_id, credential_id, kind, site_id, secret_hash, revoked_at, expires_at, is_test, last_used_at), update (is_test, last_used_at)`,
    // Not the key that its webhooks are signed with.
    environments: 'select (environment_id, account_id, phone_identifies, deleted_at)',
    event_type_sets: READ,
    event_types: READ,
    message_deliveries: 'select (environment_id, delivery_id)',
  },
  sluice_worker: {
    ...OF_EVERY_PROCESS,
    accounts: 'select, update',
    api_credentials: READ,
    applications: READ,
    audit_chains: 'select, insert, update',
    audit_log_export_parts: 'select, insert',
    audit_log_exports: 'select, update, delete',
    audit_logs: 'select, insert',
    catalogue_plans: ALL,
    credit_accounts: 'select, insert, update',
    credit_entries: 'select, insert',
    credit_grants: 'select, insert, update',
    credit_holds: 'select, update',
    credit_transactions: 'select, insert',
    deleted_identifiers: ALL,
    delivery_attempts: 'select, insert, delete',
    delivery_log: ALL,
    delivery_minutes: ALL,
    devices: ALL,
    envelopes: 'select, insert, delete',
    environments: 'select, update',
    event_ids: 'select, insert',
    event_minutes: ALL,
    events: 'select, insert, update',
    feed_chunks: ALL,
    first_engagements: 'select, insert',
    idempotency_keys: 'select, update',
    identity_providers: 'select, update',
    import_chunks: ALL,
    import_problems: 'select, insert',
    imports: 'select, update, delete',
    inbox_preview_days: 'select, insert, update',
    inbox_preview_runs: READ,
    ingestion_issues: ALL,
    lane_merges: ALL,
    lanes: 'select, update',
    merge_gate: 'select, update',
    message_deliveries: 'select, insert, update',
    objects: ALL,
    outbox: 'select, insert',
    parked_operations: 'select, insert',
    people: ALL,
    people_counts: ALL,
    person_identifiers: ALL,
    receipts: 'select, insert',
    relationships: ALL,
    replay_attempts: 'select, insert',
    run_steps: 'select, insert, update',
    runs: 'select, update',
    second_factors: 'select, update',
    segment_members: 'select, insert, delete',
    service_accounts: READ,
    usage_watermarks: 'select, update',
    users: READ,
    vendor_customers: 'select, insert, update',
    vendor_events: 'select, insert, update',
    visitors: ALL,
    webhook_replays: 'select, update, delete',
    webhook_tokens: 'select, insert, update',
    webhooks: 'select, update, delete',
    worker_processes: ALL,
  },
  sluice_api: {
    ...OF_EVERY_PROCESS,
    account_products:
      'select, insert (account_id, product, is_active, activated_at), update (is_active, activated_at)',
    // Not how it pays. Its plan only from a trial to a Builder plan of the catalogue (0076, 0077).
    accounts: `select, insert (name, data_center, currency, is_sandbox, billing_email, created_at, updated_at), update (name, timezone, website, billing_email, owner_user_id, address, is_two_factor_required, card_changing_until, plan_id, plan_name, plan_tier, plan_status, plan_unpaid_run_id, status, trial_ends_at, updated_at)`,
    api_credentials: 'select, insert, update',
    applications: ALL,
    audit_chains: 'select, insert, update',
    audit_log_export_parts: READ,
    audit_log_exports: 'select, insert',
    audit_logs: 'select, insert',
    call_counts: ALL,
    // Its triggers read them (`migrations/0077_catalogue_plans.ts`).
    catalogue_plans: READ,
    console_sessions: ALL,
    credit_accounts: 'select, insert (account_id, kind), update (last_grant_id, last_entry_id)',
    credit_entries: 'select, insert',
    // It debits, refunds a debit, and gives the allowance of a month; 0076 and 0077 refuse other grants, facts and entries.
    credit_grants: 'select, insert, update (available, held, used, expired)',
    credit_transactions: 'select, insert',
    delivery_attempts: 'select, insert',
    delivery_log: 'select, insert',
    delivery_minutes: READ,
    device_logins: ALL,
    devices: READ,
    envelopes: READ,
    environments: 'select, insert, update',
    event_ids: READ,
    event_minutes: READ,
    event_type_sets: 'select, insert, update',
    event_types: ALL,
    events: READ,
    feed_chunks: 'select, delete',
    idempotency_keys: ALL,
    identity_provider_domains: ALL,
    identity_providers: ALL,
    import_chunks: ALL,
    import_problems: READ,
    imports: ALL,
    inbox_preview_days: 'select, update (refunded)',
    inbox_preview_runs: 'select, insert, update (refunded)',
    ingestion_issues: READ,
    lanes: ALL,
    memberships: 'select, insert, delete',
    objects: READ,
    outbox: ALL,
    parked_operations: READ,
    partners: 'select, insert, update',
    people: READ,
    people_counts: READ,
    person_identifiers: READ,
    portal_link_webhooks: 'select, insert, delete',
    portal_links: ALL,
    provider_sign_ins: 'select, insert, delete',
    receipts: READ,
    recovery_codes: ALL,
    relationships: READ,
    replay_attempts: READ,
    run_steps: READ,
    // It sets how long the customer may pay; only the worker writes how it ends, at its start too.
    runs: `select, insert (account_id, run_id, lane, kind, rail, fingerprint, content, origin, expires_at, next_at, created_at), update (expires_at)`,
    second_factors: ALL,
    service_accounts: 'select, insert, update',
    sign_in_codes: ALL,
    signups: ALL,
    usage_watermarks: 'select, insert, update (closed_through)',
    user_identities: ALL,
    users: 'select, insert, update',
    vendor_customers: 'select, insert (account_id, customer_id), update (has_card)',
    // Deletes only applied events.
    vendor_events: 'select, insert (event_id, type, object_id, received_at, next_at), delete',
    webhook_replays: 'select, insert, update',
    // Goes with its webhook; the token itself is not read.
    webhook_tokens: 'select (environment_id, webhook_id), delete',
    webhooks: 'select, insert, update',
  },
};

/** May be called by the worker alone: they act as the owner (`migrations/0057_partition_upkeep.ts`). */
export const WORKER_FUNCTIONS = [
  'make_event_partitions(date, int)',
  'make_visitor_partitions(date, int)',
  'make_delivery_partitions(date, int)',
  'drop_visitor_partition(text)',
  'make_kept_delivery_partition(text, text, date)',
  'drop_delivery_partition(text, text, date, boolean)',
] as const;
