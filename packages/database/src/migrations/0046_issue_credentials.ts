/** Which credential sent the latest call of an issue, so that its sender can be found. Null: not known, or before. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const issueCredentials: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table ingestion_issues add column credential_id bigint`.execute(database);
  },
};
