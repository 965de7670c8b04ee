/** An account with as many entries as wanted, made in one statement; their hashes are made up. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export async function insertAuditedAccount(
  database: Database,
  accountId: number,
  entryCount: number,
): Promise<void> {
  await sql`insert into accounts (account_id, name) values (${accountId}, 'A') on conflict do nothing`.execute(
    database,
  );
  await sql`
    insert into audit_chains (account_id, last_id, last_at) values (${accountId}, ${entryCount}, '2026-02-01')`.execute(
    database,
  );
  await sql`
    insert into audit_logs
      (account_id, audit_log_id, occurred_at, actor_type, user_id, action, object_type, object_id, object_name,
       ip_addr, changes, previous_hash, hash)
    select ${accountId}, n, timestamptz '2026-01-01Z' + n * interval '1 second', 'user', n % 3, 'updated', 'account',
           n % 5, '=name ' || n, '10.0.0.' || n % 7,
           jsonb_build_array(jsonb_build_object('attribute', 'name', 'from', n, 'to', n + 1, 'redacted', false)),
           sha256((n - 1)::text::bytea), sha256(n::text::bytea)
      from generate_series(1, ${entryCount}::int) n`.execute(database);
}
