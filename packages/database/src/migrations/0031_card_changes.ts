/** Time limit of a card change at the vendor (`card-changes.ts`). */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const cardChanges: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table accounts add column card_changing_until timestamptz`.execute(database);
  },
};
