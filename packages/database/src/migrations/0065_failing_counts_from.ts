/** Since when days of failure count (`webhooks/failing-webhooks.ts`): the webhook was enabled again, or got another address. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const failingCountsFrom: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Null: since the first failure. A row of before has no other time, so nothing is written.
    await sql`alter table webhooks add column failing_counts_from timestamptz`.execute(database);
  },
};
