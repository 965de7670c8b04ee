/** Tables of the account surface with a row an account. In them, a statement that reads all of them is noticed. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export async function fillAccounts(database: Database, count: number): Promise<void> {
  const fill = (statement: string) =>
    sql.raw(`${statement} from generate_series(1, ${count}) n`).execute(database);
  await fill(`insert into accounts (account_id, name) select n, 'A'`);
  await fill(
    `insert into environments (account_id, environment_id, name, webhook_signing_key) select n, n, 'A', 'key'`,
  );
  await fill(
    `insert into users (account_id, user_id, email, first_name, last_name, role, status)
     select n, n, n || '@example.com', 'A', 'B', 'member', 'active'`,
  );
  await fill(
    `insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
     select n, n, sha256(n::text::bytea), 'code', now() + interval '1 day', '10.0.0.1'`,
  );
  await fill(
    `insert into second_factors (account_id, user_id, secret, confirmed_at) select n, n, 'a', now()`,
  );
  await fill(
    `insert into identity_providers (account_id, issuer, client_id, client_secret)
     select n, 'https://login' || n || '.example', 'sluice', 'a'`,
  );
  await fill(
    `insert into identity_provider_domains (account_id, domain) select n, n || '.example'`,
  );
  await fill(
    `insert into provider_sign_ins (account_id, state_hash, browser_hash, issuer, client_id)
     select n, sha256(n::text::bytea), sha256(n::text::bytea), 'https://login' || n || '.example', 'sluice'`,
  );
  await fill(
    `insert into user_identities (account_id, user_id, issuer, subject)
     select n, n, 'https://login' || n || '.example', n::text`,
  );
  await fill(`insert into memberships (account_id, user_id, environment_id) select n, n, n`);
  await fill(
    `insert into account_products (account_id, product, is_active) select n, 'pipelines', true`,
  );
  await fill(
    `insert into service_accounts (account_id, service_account_id, name, role) select n, n, 'A', 'member'`,
  );
  await fill(
    `insert into api_credentials (account_id, credential_id, service_account_id, kind, name, secret_hash, secret_hint)
     overriding system value
     select n, n, n, 'service_account', 'A', sha256(n::text::bytea), 'hint'`,
  );
  await fill(
    `insert into api_credentials (account_id, credential_id, service_account_id, kind, name, secret_hash, secret_hint, for_user_id, expires_at)
     overriding system value
     select n, n + ${count}, n, 'service_account', 'A', sha256(('program ' || n)::bytea), 'hint', n, now() + interval '90 days'`,
  );
  await fill(
    `insert into device_logins (device_hash, code_hash, client_name, account_id, user_id, environment_id, is_approved)
     select sha256(('device ' || n)::bytea), sha256(('code ' || n)::bytea), 'a', n, n, n, true`,
  );
  await fill(`insert into audit_chains (account_id, last_id, last_at) select n, 1, now()`);
  await fill(
    `insert into audit_logs (account_id, audit_log_id, occurred_at, actor_type, user_id, action, object_type, object_id, changes, previous_hash, hash)
     select n, 1, now(), 'user', n, 'updated', 'account', n::text, '[]', sha256('a'), sha256('b')`,
  );
  await fill(
    `insert into audit_log_exports (account_id, export_id, created_at, until_id, format, filter, status, expires_at)
     select n, 'exp_' || n, now(), 1, 'csv', '{}', 'failed', timestamptz '2026-03-01Z' + n * interval '1 minute'`,
  );
  await fill(
    `insert into audit_log_export_parts (account_id, export_id, part, content) select n, 'exp_' || n, 1, ''`,
  );
  await fill(
    `insert into signups (email, ip, started_at, code_hmac, code_expires_at)
     select n || '@signup.example', '10.0.0.' || n, timestamptz '2026-03-01T12:00:00Z', 'a', timestamptz '2026-03-02Z'`,
  );
  await fill(
    `insert into outbox (topic, dedupe_key, payload, created_at, next_attempt_at)
     select 'signup.mail', 'old-' || n, '{}', timestamptz '2026-03-01Z' + n * interval '1 second', case when n > ${count - 10} then timestamptz '2026-01-01Z' end`,
  );
  await fill(
    `insert into vendor_events (event_id, type, object_id, received_at, settled_at, next_at)
     select n, 'invoice.paid', 'in_' || n, now(), timestamptz '2026-03-01Z' + n * interval '1 second', now()`,
  );
  await fill(
    `insert into idempotency_keys (principal, key_hash, fingerprint, started_at, locked_until)
     select 'credential ' || n, 'a', 'b', timestamptz '2026-03-01Z' + n * interval '1 second', timestamptz '2026-01-01Z'`,
  );
  await fill(
    `insert into call_counts (subject, window_started_at, taken)
     select 'token ' || n, timestamptz '2026-03-01Z' + n * interval '1 second', 1`,
  );
  await fill(
    `insert into partners (partner_id, name, status, created_at)
     select 'partner_' || n, 'P' || n, case when n % 500 = 0 then 'approved' else 'pending' end, now()`,
  );
  await fill(
    `insert into receipts (account_id, receipt_id, number, issued_at, billed_to, lines, total, currency)
     select n, 'receipt_' || n, 'R', now(), 'A', '[]', 0, 'usd'`,
  );
  await fill(
    `insert into runs (account_id, run_id, lane, kind, rail, fingerprint, status, content, result, origin, created_at, finished_at)
     select n, 'run_' || n, 'checkout', 'checkout', 'card', 'a', 'success', '{}', '{}', '{}', now(), now()`,
  );
  await fill(`insert into vendor_customers (account_id, customer_id) select n, 'cus_' || n`);
  for (const [table, column] of [
    ['accounts', 'account_id'],
    ['environments', 'environment_id'],
    ['users', 'user_id'],
    ['service_accounts', 'service_account_id'],
    ['api_credentials', 'credential_id'],
  ])
    await sql`select setval(pg_get_serial_sequence(${table}, ${column}), 100000)`.execute(database);
  await sql`analyze`.execute(database);
}
