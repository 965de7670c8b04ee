/**
 * Exports of the audit log: the order, its progress, and the file in parts.
 *
 * The file lives here because processes that write and that send it share only Postgres and the broker. A part and the
 * position after it are written in one transaction, so an export that was cut short goes on at that position, and no
 * part is there twice.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const auditLogExports: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table audit_log_exports (
        account_id bigint not null references audit_chains,
        export_id text collate "C" not null,
        created_at timestamptz(3) not null,
        completed_at timestamptz(3),
        -- The file is cleared away then.
        expires_at timestamptz(3),
        -- The lease: who holds this number may write, until the time. By the database's clock.
        fencing bigint not null default 0,
        lease_until timestamptz,
        size_bytes bigint not null default 0,
        requested_by_user_id int,
        requested_by_service_account_id int,
        -- Entries with after_id < id <= until_id are still to be looked at.
        after_id int not null default 0,
        until_id int not null,
        row_count int not null default 0,
        part_count int not null default 0,
        attempt_count int not null default 0,
        status text collate "C" not null default 'pending'
          check (status in ('pending', 'processing', 'completed', 'failed')),
        format text collate "C" not null check (format in ('csv', 'ndjson')),
        -- AuditLogFilter
        filter jsonb not null,
        sha256 bytea,
        primary key (account_id, export_id),
        check ((status = 'completed') = (sha256 is not null))
      ) with (fillfactor = 50)`.execute(database);
    // Found by the sweeps, which are the installation's, not an account's.
    await sql`
      create index audit_log_exports_unfinished on audit_log_exports (created_at)
        where status in ('pending', 'processing')`.execute(database);
    await sql`
      create index audit_log_exports_expiring on audit_log_exports (expires_at)
        where expires_at is not null`.execute(database);

    await sql`
      create table audit_log_export_parts (
        account_id bigint not null,
        export_id text collate "C" not null,
        part int not null,
        content bytea not null,
        primary key (account_id, export_id, part),
        foreign key (account_id, export_id) references audit_log_exports on delete cascade
      )`.execute(database);
  },
};
