/** Former owners of remembered names. A deleted person is remembered with all their names. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const formerOwners: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table deleted_identifiers
        -- By owner, the time until which it was theirs. Null: an earlier version remembered the name.
        add column owners jsonb,
        -- Of a deleted person, under their number.
        add column names jsonb`.execute(database);
  },
};
