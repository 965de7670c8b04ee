-- The schema on Citus, past one Postgres: run once on the coordinator, after `npm run migrate`, before the
-- first row. Why each is where it is: ../citus.md. A test holds this file to the migrated schema.

-- What every node needs to join with and to point at, or is unique over the installation: accounts, who may
-- call, and who is whom at the payment provider. Small, seldom written.
select create_reference_table('accounts');
select create_reference_table('environments');
select create_reference_table('users');
select create_reference_table('memberships');
select create_reference_table('service_accounts');
select create_reference_table('account_products');
select create_reference_table('api_credentials');
select create_reference_table('partners');
select create_reference_table('vendor_customers');

-- What belongs to one workspace.
select create_distributed_table('people', 'environment_id');
select create_distributed_table('people_counts', 'environment_id', colocate_with => 'people');
select create_distributed_table('person_identifiers', 'environment_id', colocate_with => 'people');
select create_distributed_table('devices', 'environment_id', colocate_with => 'people');
select create_distributed_table('segment_members', 'environment_id', colocate_with => 'people');
select create_distributed_table('visitors', 'environment_id', colocate_with => 'people');
select create_distributed_table('deleted_identifiers', 'environment_id', colocate_with => 'people');
select create_distributed_table('message_deliveries', 'environment_id', colocate_with => 'people');
select create_distributed_table('first_engagements', 'environment_id', colocate_with => 'people');
select create_distributed_table('objects', 'environment_id', colocate_with => 'people');
select create_distributed_table('relationships', 'environment_id', colocate_with => 'people');
select create_distributed_table('events', 'environment_id', colocate_with => 'people');
select create_distributed_table('event_ids', 'environment_id', colocate_with => 'people');
select create_distributed_table('ingestion_issues', 'environment_id', colocate_with => 'people');
select create_distributed_table('parked_operations', 'environment_id', colocate_with => 'people');
select create_distributed_table('webhooks', 'environment_id', colocate_with => 'people');
select create_distributed_table('portal_links', 'environment_id', colocate_with => 'people');
select create_distributed_table('portal_link_webhooks', 'environment_id', colocate_with => 'people');
select create_distributed_table('lanes', 'environment_id', colocate_with => 'people');
select create_distributed_table('lane_merges', 'environment_id', colocate_with => 'people');
select create_distributed_table('delivery_log', 'environment_id', colocate_with => 'people');
select create_distributed_table('delivery_attempts', 'environment_id', colocate_with => 'people');
select create_distributed_table('webhook_replays', 'environment_id', colocate_with => 'people');
select create_distributed_table('replay_attempts', 'environment_id', colocate_with => 'people');
select create_distributed_table('imports', 'environment_id', colocate_with => 'people');
select create_distributed_table('import_chunks', 'environment_id', colocate_with => 'people');
select create_distributed_table('import_problems', 'environment_id', colocate_with => 'people');

-- What belongs to one account: the audit log and billing.
select create_distributed_table('audit_chains', 'account_id');
select create_distributed_table('audit_logs', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('audit_log_exports', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('audit_log_export_parts', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('console_sessions', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('second_factors', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('recovery_codes', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('receipts', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('runs', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('run_steps', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('credit_accounts', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('credit_grants', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('credit_transactions', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('credit_entries', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('credit_holds', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('usage_watermarks', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('inbox_preview_runs', 'account_id', colocate_with => 'audit_chains');
select create_distributed_table('inbox_preview_days', 'account_id', colocate_with => 'audit_chains');

-- What belongs to nobody, stays on the coordinator: unique over the whole installation.
select citus_add_local_table_to_metadata('envelopes');
select citus_add_local_table_to_metadata('outbox');
select citus_add_local_table_to_metadata('signups');
select citus_add_local_table_to_metadata('sign_in_codes');
select citus_add_local_table_to_metadata('idempotency_keys');
select citus_add_local_table_to_metadata('call_counts');
select citus_add_local_table_to_metadata('vendor_events');
select citus_add_local_table_to_metadata('installation');
select citus_add_local_table_to_metadata('schema_requirements');
-- A row a process, read by all of them.
select citus_add_local_table_to_metadata('worker_processes');
select citus_add_local_table_to_metadata('process_heartbeats');

-- Has no rows, only a lock, which there must be one of.
select citus_add_local_table_to_metadata('merge_gate');
