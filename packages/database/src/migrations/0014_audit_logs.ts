/**
 * The audit log: one row a change, written in the transaction of the change.
 *
 *   audit_chains ──1:n── audit_logs     each row has the hash of the one before
 *
 * `audit_log_id` counts each account's rows from 1 without a gap, so that a removed row shows, ids stay within int32 (the
 * API's cursor is one), and an id does not show the activity of other accounts. The chain's row is the lock that makes it
 * so, and remembers the last hash, so that rows cut off at the end show. Times never decrease along the ids: a time bound
 * is an id bound, one probe of an index.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const auditLogs: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table audit_chains (
        account_id bigint primary key references accounts,
        last_id int not null default 0,
        last_at timestamptz(3) not null default '-infinity',
        last_hash bytea not null default decode(repeat('00', 32), 'hex')
      ) with (fillfactor = 50)`.execute(database);

    await sql`
      create table audit_logs (
        account_id bigint not null references audit_chains,
        audit_log_id int not null,
        environment_id int,
        occurred_at timestamptz(3) not null,
        -- The credential that was used, whoever acted.
        credential_id bigint,
        user_id int,
        service_account_id int,
        actor_type text collate "C" not null check (actor_type in ('user', 'service_account', 'system')),
        action text collate "C" not null check (action in ('created', 'updated', 'deleted')),
        object_type text collate "C" not null,
        object_id text collate "C" not null,
        object_name text,
        -- Canonical text, which prefixes are matched on.
        ip_addr text collate "C",
        user_agent text,
        request_id text,
        run_id text,
        -- [{attribute, from, to, redacted}]
        changes jsonb not null,
        changed_attributes jsonb not null
          generated always as (jsonb_path_query_array(changes, '$[*].attribute')) stored,
        previous_hash bytea not null,
        hash bytea not null,
        primary key (account_id, audit_log_id)
      )`.execute(database);

    // Each filter that may be rare has the rows it finds in the order of the list (`audit-log-reads.ts`).
    await sql`create index audit_logs_by_time on audit_logs (account_id, occurred_at, audit_log_id)`.execute(
      database,
    );
    await sql`create index audit_logs_by_type on audit_logs (account_id, object_type, audit_log_id)`.execute(
      database,
    );
    await sql`
      create index audit_logs_by_object on audit_logs (account_id, object_type, object_id, audit_log_id)`.execute(
      database,
    );
    await sql`
      create index audit_logs_by_user on audit_logs (account_id, user_id, audit_log_id)
        where user_id is not null`.execute(database);
    await sql`
      create index audit_logs_by_service_account on audit_logs (account_id, service_account_id, audit_log_id)
        where service_account_id is not null`.execute(database);
    await sql`
      create index audit_logs_by_address on audit_logs (account_id, ip_addr text_pattern_ops, audit_log_id)
        where ip_addr is not null`.execute(database);

    // Against our own mistakes; the owner of the database can switch it off, and npm run verify then reports it.
    await sql`
      create function refuse_audit_change() returns trigger language plpgsql as $$
      begin
        raise exception 'audit_logs is append-only';
      end $$`.execute(database);
    await sql`
      create trigger audit_logs_append_only before update or delete on audit_logs
        for each row execute function refuse_audit_change()`.execute(database);
  },
};
