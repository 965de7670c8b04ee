/** Pipelines keys that begin as keys to test with (`ingestion-webhooks.md` §5). */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const testKeys: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // True: it opens identify calls only, and is saved (false) by the first of them that is taken.
    await sql`alter table api_credentials add column is_test boolean not null default false`.execute(
      database,
    );
  },
};
