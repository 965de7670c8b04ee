/**
 * Places of tables on Citus, with their tenant columns. `distribute.ts` acts on it, and tests hold it to the migrated
 * schema and to every statement.
 *
 * Tables that grow with events and people are spread over the nodes by their workspace. All others stay on the
 * coordinator, as plain tables that Citus does not know: tables with values that are unique over the installation,
 * tables that are seldom written, and tables that one statement joins with these. So a statement about these may do all
 * that Postgres can.
 */

export type TenantColumn = 'environment_id' | 'account_id';

export type TablePlace =
  /** Its rows are on the nodes; all rows of one workspace are together. */
  | { readonly kind: 'distributed'; readonly tenantColumn: 'environment_id' }
  /** `tenantColumn` is absent if the rows are the installation's, or define the tenants and their callers. */
  | {
      readonly kind: 'coordinator';
      readonly tenantColumn?: TenantColumn;
      /** Owner of a row whose keys are unique over the installation. Statements name it too. */
      readonly ownerColumn?: TenantColumn;
    };

const DISTRIBUTED: TablePlace = { kind: 'distributed', tenantColumn: 'environment_id' };
const OF_WORKSPACE: TablePlace = { kind: 'coordinator', tenantColumn: 'environment_id' };
const OF_ACCOUNT: TablePlace = { kind: 'coordinator', tenantColumn: 'account_id' };
const OF_OWNER: TablePlace = { kind: 'coordinator', ownerColumn: 'account_id' };
const OF_INSTALLATION: TablePlace = { kind: 'coordinator' };

/** Every table except Kysely's own, the queues' tables, and partitions. */
export const TABLE_PLACES: Readonly<Record<string, TablePlace>> = {
  // People with their events. `people` is first: the others are beside it.
  people: DISTRIBUTED,
  people_counts: DISTRIBUTED,
  person_identifiers: DISTRIBUTED,
  devices: DISTRIBUTED,
  segment_members: DISTRIBUTED,
  visitors: DISTRIBUTED,
  deleted_identifiers: DISTRIBUTED,
  message_deliveries: DISTRIBUTED,
  first_engagements: DISTRIBUTED,
  objects: DISTRIBUTED,
  relationships: DISTRIBUTED,
  events: DISTRIBUTED,
  event_ids: DISTRIBUTED,
  ingestion_issues: DISTRIBUTED,

  // Webhooks and their deliveries: one statement advances a lane, writes its log and reads who the account is.
  webhooks: OF_WORKSPACE,
  webhook_tokens: OF_WORKSPACE,
  portal_links: OF_WORKSPACE,
  portal_link_webhooks: OF_WORKSPACE,
  lanes: OF_WORKSPACE,
  lane_merges: OF_WORKSPACE,
  delivery_log: OF_WORKSPACE,
  delivery_attempts: OF_WORKSPACE,
  webhook_replays: OF_WORKSPACE,
  replay_attempts: OF_WORKSPACE,
  // Recipients and types of published messages, and the sizes of feeds.
  applications: OF_WORKSPACE,
  event_types: OF_WORKSPACE,
  event_type_sets: OF_WORKSPACE,
  feed_chunks: OF_WORKSPACE,
  // A few rows a minute; the rows of deliveries are read beside lanes.
  event_minutes: OF_WORKSPACE,
  delivery_minutes: OF_WORKSPACE,
  // Files that leave once they are imported, and operations that a fault left to be tried again.
  imports: OF_WORKSPACE,
  import_chunks: OF_WORKSPACE,
  import_problems: OF_WORKSPACE,
  parked_operations: OF_WORKSPACE,

  // The audit log, sessions and billing.
  audit_chains: OF_ACCOUNT,
  audit_logs: OF_ACCOUNT,
  audit_log_exports: OF_ACCOUNT,
  audit_log_export_parts: OF_ACCOUNT,
  console_sessions: OF_ACCOUNT,
  second_factors: OF_ACCOUNT,
  recovery_codes: OF_ACCOUNT,
  identity_providers: OF_ACCOUNT,
  provider_sign_ins: OF_ACCOUNT,
  user_identities: OF_ACCOUNT,
  receipts: OF_ACCOUNT,
  runs: OF_ACCOUNT,
  run_steps: OF_ACCOUNT,
  credit_accounts: OF_ACCOUNT,
  credit_grants: OF_ACCOUNT,
  credit_transactions: OF_ACCOUNT,
  credit_entries: OF_ACCOUNT,
  credit_holds: OF_ACCOUNT,
  usage_watermarks: OF_ACCOUNT,
  inbox_preview_runs: OF_ACCOUNT,
  inbox_preview_days: OF_ACCOUNT,

  // The tenants and their callers: e-mail addresses, workspace ids and secrets are unique over the installation.
  accounts: OF_OWNER,
  environments: OF_OWNER,
  users: OF_OWNER,
  memberships: OF_OWNER,
  identity_provider_domains: OF_OWNER,
  device_logins: OF_OWNER,
  service_accounts: OF_OWNER,
  account_products: OF_OWNER,
  api_credentials: OF_OWNER,
  partners: OF_INSTALLATION,
  vendor_customers: OF_OWNER,

  // Rows without a tenant: a row a thousand events, a row a change, a row a process, a row a plan,
  // and the gate of merges.
  envelopes: OF_INSTALLATION,
  outbox: OF_INSTALLATION,
  signups: OF_INSTALLATION,
  sign_in_codes: OF_INSTALLATION,
  idempotency_keys: OF_INSTALLATION,
  call_counts: OF_INSTALLATION,
  vendor_events: OF_INSTALLATION,
  catalogue_plans: OF_INSTALLATION,
  installation: OF_INSTALLATION,
  schema_requirements: OF_INSTALLATION,
  worker_processes: OF_INSTALLATION,
  process_heartbeats: OF_INSTALLATION,
  merge_gate: OF_INSTALLATION,
};

/** In the order in which they are distributed. */
export const DISTRIBUTED_TABLES: readonly string[] = Object.entries(TABLE_PLACES).flatMap(
  ([table, { kind }]) => (kind === 'distributed' ? [table] : []),
);

/** Column that each statement about a table of tenants names. */
export const TENANT_COLUMNS: ReadonlyMap<string, TenantColumn> = new Map(
  Object.entries(TABLE_PLACES).flatMap(([table, place]) => {
    const column =
      place.tenantColumn ?? (place.kind === 'coordinator' ? place.ownerColumn : undefined);
    return column === undefined ? [] : [[table, column] as const];
  }),
);
