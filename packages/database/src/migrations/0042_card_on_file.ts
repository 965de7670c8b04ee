/**
 * Mark of a card on file, and index of equal purchases.
 *
 * With the mark, a purchase without a means of payment is refused before it starts. With the index, a double click buys
 * once.
 *
 * Accounts from before begin without: the payment provider is asked about them.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const cardOnFile: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table vendor_customers add column has_card boolean not null default false`.execute(
      database,
    );
    await sql`
      create index runs_by_content on runs (account_id, fingerprint, created_at)
        where kind in ('credits', 'inbox_previews')`.execute(database);
  },
};
