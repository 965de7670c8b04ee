/**
 * Credits: grants and the ledger of moves between their places. A grant's row is the sum of its moves; every change of
 * one kind of an account waits for the row of `credit_accounts`.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const credits: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table credit_accounts (
        account_id bigint not null references accounts,
        kind text not null check (kind in ('llm', 'builder', 'inbox_previews')),
        last_grant_id int not null default 0,
        last_entry_id bigint not null default 0,
        primary key (account_id, kind)
      )`.execute(database);

    await sql`
      create table credit_grants (
        account_id bigint not null,
        kind text not null,
        grant_id int not null,
        pool text not null check (pool in ('monthly_allowance', 'goodwill', 'purchased')),
        granted bigint not null check (granted > 0),
        available bigint not null check (available >= 0),
        held bigint not null check (held >= 0),
        used bigint not null check (used >= 0),
        expired bigint not null check (expired >= 0),
        expires_at timestamptz,
        created_at timestamptz not null,
        primary key (account_id, kind, grant_id),
        foreign key (account_id, kind) references credit_accounts,
        check (available + held + used + expired = granted)
      )`.execute(database);
    await sql`
      create index credit_grants_live on credit_grants (account_id, kind, grant_id)
        where available > 0 or held > 0`.execute(database);

    // Grants that have ended with credits left, of all tenants.
    await sql`
      create index credit_grants_ending on credit_grants (expires_at) where available > 0`.execute(
      database,
    );

    // One row a fact that moves credits: its key makes the fact count once.
    await sql`
      create table credit_transactions (
        account_id bigint not null,
        kind text not null,
        transaction_key text not null,
        reason text not null
          check (reason in ('grant', 'debit', 'hold', 'capture', 'refund', 'expiry')),
        created_at timestamptz not null,
        primary key (account_id, kind, transaction_key),
        foreign key (account_id, kind) references credit_accounts
      )`.execute(database);

    await sql`
      create table credit_entries (
        account_id bigint not null,
        kind text not null,
        entry_id bigint not null,
        transaction_key text not null,
        grant_id int not null,
        from_place text not null check (from_place in ('issued', 'available', 'held', 'used')),
        to_place text not null check (to_place in ('available', 'held', 'used', 'expired')),
        amount bigint not null check (amount > 0),
        -- What may be spent of this kind after it.
        available_after bigint not null check (available_after >= 0),
        created_at timestamptz not null,
        primary key (account_id, kind, entry_id),
        foreign key (account_id, kind, grant_id) references credit_grants,
        foreign key (account_id, kind, transaction_key) references credit_transactions,
        check (from_place <> to_place)
      )`.execute(database);
    await sql`
      create index credit_entries_of_transaction
        on credit_entries (account_id, kind, transaction_key)`.execute(database);
    // Insert only: the ledger is a record of the past.
    await sql`
      create function credit_entries_stay() returns trigger language plpgsql as $$
      begin
        raise exception 'credit_entries is insert only';
      end $$`.execute(database);
    await sql`
      create trigger credit_entries_stay before update or delete on credit_entries
        for each row execute function credit_entries_stay()`.execute(database);
  },
};
