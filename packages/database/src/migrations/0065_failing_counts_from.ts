/** Since when days of failure count (`webhooks/failing-webhooks.ts`): the webhook was enabled again, or got another address. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const failingCountsFrom: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Null: since the first failure. An earlier row has no other time, so the migration writes no row.
    await sql`alter table webhooks add column failing_counts_from timestamptz`.execute(database);
  },
};
