/** Runs that were set aside for a person, pending or not: very few, counted at each scrape. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const setAsideRuns: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`create index runs_set_aside on runs (created_at) where review_reason is not null`.execute(
      database,
    );
  },
};
