/** Requirements of this schema on code: one row for each migration that broke with older code. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const schemaRequirements: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table schema_requirements (
        migration text primary key,
        oldest_code text not null
      )`.execute(database);
  },
};
