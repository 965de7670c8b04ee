/** Purchases: runs, the steps that each has taken at the vendor, and the vendor's events. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const billingRuns: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table vendor_customers (
        account_id bigint not null references accounts primary key,
        customer_id text not null,
        created_at timestamptz not null default now()
      )`.execute(database);

    await sql`
      create table runs (
        account_id bigint not null references accounts,
        run_id text not null,
        lane text not null check (lane in ('invoiced', 'addons', 'checkout', 'card')),
        kind text not null check (kind in ('addons', 'credits', 'inbox_previews', 'checkout')),
        rail text not null check (rail in ('card', 'invoiced')),
        fingerprint text not null,
        status text not null default 'pending'
          check (status in ('pending', 'success', 'declined', 'refused', 'failed')),
        -- May be shown to the customer.
        message text,
        -- What is bought, at the price of the catalogue when it was started.
        content jsonb not null,
        -- What came of it.
        result jsonb,
        invoice_id text,
        -- Who started it, for the audit log.
        origin jsonb not null,
        -- The worker that may write: each claim takes the next number.
        fence bigint not null default 0,
        lease_until timestamptz,
        next_at timestamptz not null default now(),
        wait_count int not null default 0,
        -- Card rail: the customer may pay until then.
        expires_at timestamptz,
        -- Why a person has to look at it; the run goes on being pending.
        review_reason text,
        created_at timestamptz not null,
        finished_at timestamptz,
        primary key (account_id, run_id),
        check ((status = 'pending') = (finished_at is null))
      )`.execute(database);
    // One purchase in flight an account and lane, for any number of callers at the same time.
    await sql`
      create unique index runs_in_flight on runs (account_id, lane)
        where status = 'pending' and lane <> 'card'`.execute(database);
    await sql`
      create index runs_by_invoice on runs (account_id, invoice_id) where invoice_id is not null`.execute(
      database,
    );
    await sql`create index runs_by_time on runs (account_id, created_at, run_id)`.execute(database);
    // The sweep, of all tenants.
    await sql`
      create index runs_due on runs (next_at) where status = 'pending' and review_reason is null`.execute(
      database,
    );

    await sql`
      create table run_steps (
        account_id bigint not null,
        run_id text not null,
        step text not null,
        attempt int not null,
        state text not null check (state in ('intent', 'done', 'declined', 'refused', 'absent')),
        idempotency_key text not null,
        -- What the vendor was asked beyond the run's content: fixed before it is asked.
        input jsonb not null,
        output jsonb,
        started_at timestamptz not null,
        ended_at timestamptz,
        primary key (account_id, run_id, step, attempt),
        foreign key (account_id, run_id) references runs
      )`.execute(database);

    // Of no tenant until it is looked at: an event is a hint that something of the vendor's changed.
    await sql`
      create table vendor_events (
        event_id text primary key,
        type text not null,
        object_id text not null,
        received_at timestamptz not null,
        settled_at timestamptz,
        next_at timestamptz not null,
        attempt_count int not null default 0
      )`.execute(database);
    await sql`
      create index vendor_events_due on vendor_events (next_at) where settled_at is null`.execute(
      database,
    );
  },
};
