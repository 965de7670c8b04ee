/** Number of calls in the present window: one count for all API processes. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const callCounts: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Unlogged: a crash of Postgres forgets the counts, which lets at most one more window through.
    await sql`
      create unlogged table call_counts (
        -- What is counted and for whom: a token, or an IP address that has none.
        subject text primary key,
        window_started_at timestamptz not null,
        taken bigint not null
      ) with (fillfactor = 50)`.execute(database);
    await sql`create index call_counts_by_age on call_counts (window_started_at)`.execute(database);
  },
};
