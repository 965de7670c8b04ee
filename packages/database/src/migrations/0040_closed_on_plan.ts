/**
 * Finds the closed accounts that are on a plan still: accounts that were closed before their plan ended with their
 * subscription, or by a version that left it as it was.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const closedOnPlan: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index accounts_closed_on_plan on accounts (account_id)
        where status = 'closed' and plan_status <> 'canceled'`.execute(database);
  },
};
