/**
 * Plans and add-ons that a bank pays for days later.
 *
 * The vendor has them on the subscription by then. These columns have the checkout for which an account waits with its
 * plan's allowance, and the purchases that are still to be paid.
 *
 * A version from before gives the allowance at once, as it always did.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const bankPayments: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table accounts add column plan_unpaid_run_id text`.execute(database);
    // Of all tenants; very few.
    await sql`
      create index runs_due_payment on runs (created_at)
        where status = 'success' and result ? 'due'`.execute(database);
  },
};
