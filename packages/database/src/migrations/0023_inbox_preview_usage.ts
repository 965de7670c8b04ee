/**
 * Usage of inbox previews: every run, the days that are closed summed up, and how far each account's
 * days are closed. A run stays for good: its job is charged once, and may be refunded later.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const inboxPreviewUsage: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Every record, refund and close of an account's days waits for its row.
    await sql`
      create table usage_watermarks (
        account_id bigint not null references accounts primary key,
        closed_through date not null
      )`.execute(database);
    // Accounts that have days to close, of all tenants.
    await sql`
      create index usage_watermarks_open on usage_watermarks (closed_through, account_id)`.execute(
      database,
    );

    await sql`
      create table inbox_preview_runs (
        account_id bigint not null,
        preview_job_id text not null,
        -- UTC, and after every day that was closed when it was recorded.
        usage_day date not null,
        environment_id int not null,
        -- 0: no user ran it.
        user_id int not null check (user_id >= 0),
        quantity int not null check (quantity > 0),
        refunded int not null default 0,
        recorded_at timestamptz not null,
        primary key (account_id, preview_job_id),
        foreign key (account_id, environment_id) references environments (account_id, environment_id),
        check (refunded between 0 and quantity)
      )`.execute(database);
    // With the columns that summaries add up, so that they read no row of the table.
    await sql`
      create index inbox_preview_runs_by_day
        on inbox_preview_runs (account_id, usage_day, recorded_at, preview_job_id)
        include (environment_id, user_id, quantity, refunded)`.execute(database);

    await sql`
      create table inbox_preview_days (
        account_id bigint not null references accounts,
        -- What a row is of. Whatever it adds up over is 0.
        grain text not null check (grain in ('workspace_user', 'workspace', 'user', 'day')),
        usage_day date not null,
        environment_id int not null,
        user_id int not null,
        runs int not null check (runs > 0),
        used bigint not null check (used > 0),
        refunded bigint not null,
        primary key (account_id, grain, usage_day, environment_id, user_id)
          include (runs, used, refunded),
        check (refunded between 0 and used)
      )`.execute(database);
  },
};
