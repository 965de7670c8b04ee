/** Credential of an issue's latest call. It leads to the call's sender. Null: not known, or before. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const issueCredentials: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table ingestion_issues add column credential_id bigint`.execute(database);
  },
};
