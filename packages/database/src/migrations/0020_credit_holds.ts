/** Credits that are set aside for work under way, and until when. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const creditHolds: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table credit_holds (
        account_id bigint not null,
        kind text not null,
        -- The fact that it is for; the transaction that made it has the same.
        hold_key text not null,
        amount bigint not null check (amount > 0),
        expires_at timestamptz not null,
        captured bigint check (captured between 0 and amount),
        ended_at timestamptz,
        primary key (account_id, kind, hold_key),
        foreign key (account_id, kind, hold_key)
          references credit_transactions (account_id, kind, transaction_key),
        check ((captured is null) = (ended_at is null))
      )`.execute(database);
    // The sweep, of all tenants.
    await sql`
      create index credit_holds_ending on credit_holds (expires_at) where ended_at is null`.execute(
      database,
    );
  },
};
