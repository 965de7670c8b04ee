/** Whose account a customer of the vendor is: its events name the customer only. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const vendorCustomers: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create unique index vendor_customers_by_customer on vendor_customers (customer_id)`.execute(
      database,
    );
  },
};
