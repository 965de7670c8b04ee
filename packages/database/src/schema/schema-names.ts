/**
 * The migrations that this code knows, by name: what a start compares with the database. Apart from `migrate.ts`, so
 * that a process that runs none does not load them, 36 modules of its 950 and the longest of ours.
 */

/** In order; a landed one is never renamed or removed. */
export const MIGRATION_NAMES = [
  '0001_accounts',
  '0002_people_and_events',
  '0003_webhooks',
  '0004_lookup_indexes',
  '0005_webhook_operations',
  '0006_installation',
  '0007_parked_operations',
  '0008_imports',
  '0008_test_keys',
  '0009_event_traces',
  '0010_webhook_secrets',
  '0010_webhook_send_options',
  '0010_webhooks_replayed',
  '0010_webhooks_watched',
  '0011_delivery_partitions',
  '0012_account_surface',
  '0013_signup_and_receipts',
  '0014_audit_logs',
  '0015_audit_log_exports',
  '0016_billing_runs',
  '0017_credits',
  '0019_vendor_customers',
  '0020_credit_holds',
  '0021_kept_outcomes',
  '0022_call_counts',
  '0023_inbox_preview_usage',
  '0024_schema_requirements',
  '0025_envelope_traces',
  '0026_import_and_replay_traces',
  '0027_people_counts',
  '0028_credit_refunds',
  '0029_finished_records',
  '0030_credentials_in_force',
  '0031_card_changes',
  '0032_merge_gate',
  '0033_set_aside_runs',
  '0034_endpoint_versions',
  '0035_replay_endpoint_versions',
  '0037_bank_payments',
  '0038_closed_accounts',
  '0039_imports_wait_for_room',
  '0040_closed_on_plan',
  '0041_people_in_order',
  '0042_card_on_file',
] as const;

export type MigrationName = (typeof MIGRATION_NAMES)[number];
