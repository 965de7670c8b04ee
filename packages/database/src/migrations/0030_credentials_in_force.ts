/** Unrevoked credentials of a workspace or an account. They are counted before another one is made. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const credentialsInForce: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index api_credentials_in_force on api_credentials (account_id, environment_id)
        where revoked_at is null`.execute(database);
  },
};
