/**
 * Generated from the migrated schema by `npm run database:types`; a test fails when it is out of date.
 * Partitions are left out: statements name the table that they are parts of.
 */
import type { ColumnType } from "kysely";

export type Generated<T> = T extends ColumnType<infer S, infer I, infer U>
  ? ColumnType<S, I | undefined, U>
  : ColumnType<T, T | undefined, T>;

export type Int8 = ColumnType<string, bigint | number | string, bigint | number | string>;

export type Json = JsonValue;

export type JsonArray = JsonValue[];

export type JsonObject = {
  [x: string]: JsonValue | undefined;
};

export type JsonPrimitive = boolean | number | string | null;

export type JsonValue = JsonArray | JsonObject | JsonPrimitive;

export type Timestamp = ColumnType<Date, Date | string, Date | string>;

export interface AccountProducts {
  account_id: Int8;
  activated_at: Timestamp | null;
  is_active: boolean;
  product: string;
}

export interface Accounts {
  account_id: Generated<Int8>;
  address: Json | null;
  billing_email: string | null;
  billing_rail: Generated<string>;
  card_changing_until: Timestamp | null;
  created_at: Generated<Timestamp>;
  currency: Generated<string>;
  data_center: Generated<string>;
  is_sandbox: Generated<boolean>;
  is_two_factor_required: Generated<boolean>;
  name: string;
  owner_user_id: number | null;
  plan_id: Generated<string>;
  plan_name: Generated<string>;
  plan_status: Generated<string>;
  plan_tier: Generated<string>;
  status: Generated<string>;
  timezone: Generated<string>;
  trial_ends_at: Timestamp | null;
  updated_at: Generated<Timestamp>;
  website: string | null;
}

export interface ApiCredentials {
  account_id: Int8;
  created_at: Generated<Timestamp>;
  created_by_user_id: number | null;
  credential_id: Generated<Int8>;
  environment_id: number | null;
  expires_at: Timestamp | null;
  ip_allowlist: Generated<string[]>;
  is_read_only: Generated<boolean>;
  is_test: Generated<boolean>;
  kind: string;
  last_used_at: Timestamp | null;
  last_used_ip: string | null;
  name: string;
  revoked_at: Timestamp | null;
  scopes: Generated<string[]>;
  secret_hash: Buffer;
  secret_hint: string;
  service_account_id: number | null;
  site_id: string | null;
}

export interface AuditChains {
  account_id: Int8;
  last_at: Generated<Timestamp>;
  last_hash: Generated<Buffer>;
  last_id: Generated<number>;
}

export interface AuditLogExportParts {
  account_id: Int8;
  content: Buffer;
  export_id: string;
  part: number;
}

export interface AuditLogExports {
  account_id: Int8;
  after_id: Generated<number>;
  attempt_count: Generated<number>;
  completed_at: Timestamp | null;
  created_at: Timestamp;
  expires_at: Timestamp | null;
  export_id: string;
  fencing: Generated<Int8>;
  filter: Json;
  format: string;
  lease_until: Timestamp | null;
  part_count: Generated<number>;
  requested_by_service_account_id: number | null;
  requested_by_user_id: number | null;
  row_count: Generated<number>;
  sha256: Buffer | null;
  size_bytes: Generated<Int8>;
  status: Generated<string>;
  until_id: number;
}

export interface AuditLogs {
  account_id: Int8;
  action: string;
  actor_type: string;
  audit_log_id: number;
  changed_attributes: Generated<Json>;
  changes: Json;
  credential_id: Int8 | null;
  environment_id: number | null;
  hash: Buffer;
  ip_addr: string | null;
  object_id: string;
  object_name: string | null;
  object_type: string;
  occurred_at: Timestamp;
  previous_hash: Buffer;
  request_id: string | null;
  run_id: string | null;
  service_account_id: number | null;
  user_agent: string | null;
  user_id: number | null;
}

export interface CallCounts {
  subject: string;
  taken: Int8;
  window_started_at: Timestamp;
}

export interface CreditAccounts {
  account_id: Int8;
  kind: string;
  last_entry_id: Generated<Int8>;
  last_grant_id: Generated<number>;
}

export interface CreditEntries {
  account_id: Int8;
  amount: Int8;
  available_after: Int8;
  created_at: Timestamp;
  entry_id: Int8;
  from_place: string;
  grant_id: number;
  kind: string;
  to_place: string;
  transaction_key: string;
}

export interface CreditGrants {
  account_id: Int8;
  available: Int8;
  created_at: Timestamp;
  expired: Int8;
  expires_at: Timestamp | null;
  grant_id: number;
  granted: Int8;
  held: Int8;
  kind: string;
  pool: string;
  used: Int8;
}

export interface CreditHolds {
  account_id: Int8;
  amount: Int8;
  captured: Int8 | null;
  ended_at: Timestamp | null;
  expires_at: Timestamp;
  hold_key: string;
  kind: string;
}

export interface CreditTransactions {
  account_id: Int8;
  created_at: Timestamp;
  kind: string;
  reason: string;
  transaction_key: string;
}

export interface DeliveryAttempts {
  attempt: number;
  day: Generated<Timestamp>;
  duration_ms: number;
  environment_id: number;
  failure: string | null;
  failure_message: string | null;
  outcome: string;
  response_body: string | null;
  response_head: string | null;
  sequence: Int8;
  started_at: Timestamp;
  status: number | null;
  webhook_id: number;
}

export interface DeliveryLog {
  appended_at: Generated<Timestamp>;
  body: string;
  cause_event_id: string | null;
  day: Generated<Timestamp>;
  envelope_number: Int8 | null;
  environment_id: number;
  event_id: string;
  event_type: string;
  occurred_at: Timestamp;
  origin: Generated<string>;
  resend_of: Int8 | null;
  sequence: Int8;
  webhook_id: number;
}

export interface Devices {
  attributes: Json;
  created_at: Timestamp;
  environment_id: number;
  last_used_at: Timestamp | null;
  person_id: Int8;
  platform: string;
  token: string;
  updated_at: Timestamp;
}

export interface Envelopes {
  envelope_id: string;
  envelope_number: Generated<Int8 | null>;
  operation_count: number;
  processed_at: Generated<Timestamp>;
  traceparent: string | null;
}

export interface Environments {
  account_id: Int8;
  created_at: Generated<Timestamp>;
  deleted_at: Timestamp | null;
  environment_id: Generated<number>;
  name: string;
  phone_identifies: Generated<boolean>;
  webhook_signing_key: string;
}

export interface EventIds {
  created_at: Generated<Timestamp>;
  envelope_number: Int8 | null;
  environment_id: number;
  event_id: string;
  received_at: Timestamp | null;
  source: string | null;
}

export interface Events {
  anonymous_id: string | null;
  data: Json;
  environment_id: number;
  event_id: string;
  kind: string;
  name: string | null;
  occurred_at: Timestamp;
  person_id: Int8 | null;
  processed_at: Timestamp | null;
  received_at: Timestamp;
}

export interface FirstEngagements {
  created_at: Generated<Timestamp>;
  delivery_id: string;
  environment_id: number;
  link_digest: Buffer;
  metric: string;
}

export interface IdempotencyKeys {
  answer: Buffer | null;
  fingerprint: Buffer;
  key_hash: Buffer;
  locked_until: Timestamp | null;
  outcome: Buffer | null;
  principal: string;
  started_at: Timestamp;
}

export interface ImportChunks {
  bytes: Buffer;
  environment_id: number;
  first_byte: Int8;
  import_id: number;
}

export interface ImportProblems {
  code: string;
  column_name: string;
  environment_id: number;
  import_id: number;
  message: string;
  position: number;
  record: Json;
  row_number: Int8;
  severity: string;
}

export interface Imports {
  columns: Json | null;
  created_at: Timestamp;
  data_file_url: string | null;
  data_to_process: string;
  description: string | null;
  environment_id: number;
  error: string | null;
  fencing: Generated<Int8>;
  identifier: string;
  import_id: Generated<number>;
  lease_until: Timestamp | null;
  name: string;
  next_byte: Generated<Int8>;
  rows_failed: Generated<Int8>;
  rows_imported: Generated<Int8>;
  rows_read: Generated<Int8>;
  rows_warned: Generated<Int8>;
  size_bytes: Generated<Int8>;
  state: string;
  traceparent: string | null;
  updated_at: Timestamp;
}

export interface InboxPreviewDays {
  account_id: Int8;
  environment_id: number;
  grain: string;
  refunded: Int8;
  runs: number;
  usage_day: Timestamp;
  used: Int8;
  user_id: number;
}

export interface InboxPreviewRuns {
  account_id: Int8;
  environment_id: number;
  preview_job_id: string;
  quantity: number;
  recorded_at: Timestamp;
  refunded: Generated<number>;
  usage_day: Timestamp;
  user_id: number;
}

export interface IngestionIssues {
  code: string;
  count: Int8;
  day: Timestamp;
  environment_id: number;
  field: string;
  first_at: Timestamp;
  last_at: Timestamp;
  message: string;
  sample: string | null;
  source: string;
}

export interface Installation {
  is_only: Generated<boolean>;
  shard_count: number;
}

export interface Lanes {
  abandoned_sequence: Int8 | null;
  attempted_sequence: Generated<Int8>;
  cursor_sequence: Generated<Int8>;
  environment_id: number;
  failing_since: Timestamp | null;
  fencing: Generated<Int8>;
  is_abandonment_told: Generated<boolean>;
  is_failure_told: Generated<boolean>;
  is_paused: Generated<boolean>;
  last_sequence: Generated<Int8>;
  lease_until: Timestamp | null;
  next_probe_at: Timestamp | null;
  next_start_at: Timestamp | null;
  read_from_day: Timestamp | null;
  send_window: Generated<number>;
  state: Generated<string>;
  wake_at: Generated<Timestamp | null>;
  webhook_id: number;
}

export interface Memberships {
  account_id: Int8;
  environment_id: number;
  user_id: number;
}

export interface MergeGate {
  never: boolean;
}

export interface MessageDeliveries {
  channel: string;
  created_at: Timestamp;
  delivery_id: string;
  environment_id: number;
  person_id: Int8 | null;
  recipient: string | null;
}

export interface Objects {
  attributes: Json;
  attributes_at: Timestamp | null;
  created_at: Timestamp;
  environment_id: number;
  object_id: string;
  object_number: Int8;
  object_type_id: number;
  updated_at: Timestamp;
}

export interface Outbox {
  attempt: Generated<number>;
  created_at: Generated<Timestamp>;
  dedupe_key: string;
  next_attempt_at: Generated<Timestamp | null>;
  outbox_id: Generated<Int8>;
  payload: Json;
  topic: string;
}

export interface ParkedOperations {
  envelope_id: string;
  environment_id: number;
  error: string;
  operation: string;
  parked_at: Generated<Timestamp>;
  parked_id: string;
}

export interface Partners {
  created_at: Timestamp;
  decided_at: Timestamp | null;
  logo_url: string | null;
  name: string | null;
  partner_id: string;
  status: Generated<string>;
  website: string | null;
}

export interface People {
  attributes: Json;
  attributes_at: Timestamp | null;
  created_at: Timestamp;
  email: string | null;
  environment_id: number;
  id: string | null;
  person_id: Int8;
  phone: string | null;
  unsubscribed: boolean | null;
  updated_at: Timestamp;
}

export interface PeopleCounts {
  environment_id: number;
  people: Int8;
  slot: Generated<Int8>;
}

export interface PersonIdentifiers {
  environment_id: number;
  kind: string;
  person_id: Int8 | null;
  suppressed: Generated<boolean>;
  value: string;
}

export interface Receipts {
  account_id: Int8;
  billed_to: string;
  currency: string;
  issued_at: Timestamp;
  lines: Json;
  number: string;
  payment_method: string | null;
  receipt_id: string;
  total: Int8;
}

export interface Relationships {
  attributes: Json;
  created_at: Timestamp;
  environment_id: number;
  object_number: Int8;
  person_id: Int8;
  updated_at: Timestamp;
}

export interface ReplayAttempts {
  attempt: number;
  duration_ms: number;
  environment_id: number;
  failure: string | null;
  failure_message: string | null;
  outcome: string;
  replay_id: number;
  response_body: string | null;
  response_head: string | null;
  sequence: Int8;
  started_at: Timestamp;
  status: number | null;
  webhook_id: number;
}

export interface Runs {
  account_id: Int8;
  content: Json;
  created_at: Timestamp;
  expires_at: Timestamp | null;
  fence: Generated<Int8>;
  fingerprint: string;
  finished_at: Timestamp | null;
  invoice_id: string | null;
  kind: string;
  lane: string;
  lease_until: Timestamp | null;
  message: string | null;
  next_at: Generated<Timestamp>;
  origin: Json;
  rail: string;
  result: Json | null;
  review_reason: string | null;
  run_id: string;
  status: Generated<string>;
  wait_count: Generated<number>;
}

export interface RunSteps {
  account_id: Int8;
  attempt: number;
  ended_at: Timestamp | null;
  idempotency_key: string;
  input: Json;
  output: Json | null;
  run_id: string;
  started_at: Timestamp;
  state: string;
  step: string;
}

export interface SchemaRequirements {
  migration: string;
  oldest_code: string;
}

export interface SegmentMembers {
  added_at: Timestamp;
  environment_id: number;
  person_id: Int8;
  segment_id: number;
}

export interface ServiceAccounts {
  account_id: Int8;
  created_at: Generated<Timestamp>;
  created_by_user_id: number | null;
  name: string;
  role: string;
  service_account_id: Generated<number>;
}

export interface Signups {
  attempt_count: Generated<number>;
  code_expires_at: Timestamp | null;
  code_hmac: Buffer | null;
  email: string;
  ip: string;
  signup_id: Generated<Int8>;
  started_at: Timestamp;
  used_at: Timestamp | null;
}

export interface UsageWatermarks {
  account_id: Int8;
  closed_through: Timestamp;
}

export interface Users {
  account_id: Int8;
  created_at: Generated<Timestamp>;
  email: string;
  first_name: string;
  is_sso: Generated<boolean>;
  is_two_factor_enabled: Generated<boolean>;
  last_name: string;
  last_sign_in_at: Timestamp | null;
  role: string;
  status: string;
  updated_at: Generated<Timestamp>;
  user_id: Generated<number>;
}

export interface VendorCustomers {
  account_id: Int8;
  created_at: Generated<Timestamp>;
  customer_id: string;
}

export interface VendorEvents {
  attempt_count: Generated<number>;
  event_id: string;
  next_at: Timestamp;
  object_id: string;
  received_at: Timestamp;
  settled_at: Timestamp | null;
  type: string;
}

export interface WebhookReplays {
  abandoned_count: Generated<Int8>;
  attempted_position: Generated<Int8>;
  created_at: Timestamp;
  created_by: string;
  criteria: Json;
  cursor_position: Generated<Int8>;
  cursor_sequence: Int8;
  delivered_count: Generated<Int8>;
  ended_at: Timestamp | null;
  endpoint: string;
  environment_id: number;
  fencing: Generated<Int8>;
  lane_state: Generated<string>;
  lease_until: Timestamp | null;
  next_probe_at: Timestamp | null;
  next_start_at: Timestamp | null;
  rate_per_second: number;
  replay_id: Generated<number>;
  send_window: Generated<number>;
  state: Generated<string>;
  through_sequence: Int8;
  total: Int8 | null;
  traceparent: string | null;
  webhook_id: number;
}

export interface Webhooks {
  attribute_filters: Json | null;
  created_at: Generated<Timestamp>;
  custom_headers: string | null;
  deleted_at: Timestamp | null;
  disabled: Generated<boolean>;
  endpoint: string;
  environment_id: number;
  events: string[];
  full_resolution: Generated<boolean>;
  name: string;
  next_signing_key: string | null;
  next_signing_key_made_at: Timestamp | null;
  next_signs_from: Timestamp | null;
  rate_limit_per_second: number | null;
  signing_key: string;
  signing_key_made_at: Generated<Timestamp>;
  standard_webhooks: Generated<boolean>;
  updated_at: Generated<Timestamp>;
  webhook_id: Generated<number>;
  window_max: number | null;
  with_content: Generated<boolean>;
}

export interface Tables {
  account_products: AccountProducts;
  accounts: Accounts;
  api_credentials: ApiCredentials;
  audit_chains: AuditChains;
  audit_log_export_parts: AuditLogExportParts;
  audit_log_exports: AuditLogExports;
  audit_logs: AuditLogs;
  call_counts: CallCounts;
  credit_accounts: CreditAccounts;
  credit_entries: CreditEntries;
  credit_grants: CreditGrants;
  credit_holds: CreditHolds;
  credit_transactions: CreditTransactions;
  delivery_attempts: DeliveryAttempts;
  delivery_log: DeliveryLog;
  devices: Devices;
  envelopes: Envelopes;
  environments: Environments;
  event_ids: EventIds;
  events: Events;
  first_engagements: FirstEngagements;
  idempotency_keys: IdempotencyKeys;
  import_chunks: ImportChunks;
  import_problems: ImportProblems;
  imports: Imports;
  inbox_preview_days: InboxPreviewDays;
  inbox_preview_runs: InboxPreviewRuns;
  ingestion_issues: IngestionIssues;
  installation: Installation;
  lanes: Lanes;
  memberships: Memberships;
  merge_gate: MergeGate;
  message_deliveries: MessageDeliveries;
  objects: Objects;
  outbox: Outbox;
  parked_operations: ParkedOperations;
  partners: Partners;
  people: People;
  people_counts: PeopleCounts;
  person_identifiers: PersonIdentifiers;
  receipts: Receipts;
  relationships: Relationships;
  replay_attempts: ReplayAttempts;
  run_steps: RunSteps;
  runs: Runs;
  schema_requirements: SchemaRequirements;
  segment_members: SegmentMembers;
  service_accounts: ServiceAccounts;
  signups: Signups;
  usage_watermarks: UsageWatermarks;
  users: Users;
  vendor_customers: VendorCustomers;
  vendor_events: VendorEvents;
  webhook_replays: WebhookReplays;
  webhooks: Webhooks;
}
