/** When it was seen that a closed account has no subscription at the vendor any more; and the closed accounts. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const closedAccounts: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table vendor_customers add column subscriptions_ended_at timestamptz`.execute(
      database,
    );
    await sql`
      create index accounts_closed on accounts (account_id) where status = 'closed'`.execute(
      database,
    );
  },
};
