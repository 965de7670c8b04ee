/**
 * Refunds of a debit, found by the prefix of their keys. The order of the primary key is the database's own and may be
 * a language's, in which `;` comes before `:`. There a range of texts does not have exactly the texts with a prefix.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const creditRefunds: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index credit_refunds on credit_transactions (account_id, kind, transaction_key collate "C")
        where reason = 'refund'`.execute(database);
  },
};
