/**
 * The call that started a purchase, by its `Idempotency-Key`: the same call is the same purchase for
 * ever. And whose account a customer of the vendor is.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const purchaseRequests: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table runs add column request_key bytea`.execute(database);
    await sql`
      create unique index runs_by_request on runs (account_id, request_key)
        where request_key is not null`.execute(database);
    await sql`
      create unique index vendor_customers_by_customer on vendor_customers (customer_id)`.execute(
      database,
    );
  },
};
