/** An address belongs to one active user. A user who is only invited, or removed, does not reserve it. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const addressesOfActiveUsers: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // By the address first: it is asked for before there is a tenant.
    await sql`
      create unique index users_by_email_and_account on users (lower(email), account_id)`.execute(
      database,
    );
    await sql`drop index users_by_email`.execute(database);
    await sql`
      create unique index users_by_email on users (lower(email)) where status = 'active'`.execute(
      database,
    );
  },
};
