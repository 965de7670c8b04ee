/** The browser that a mailed code of a sign-in is bound to. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const signInBrowsers: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table sign_in_codes
        -- SHA-256 of the cookie. Null: the operator made the code.
        add column browser_hash bytea,
        -- The browser has signed in with the address before.
        add column is_known_browser boolean not null default false`.execute(database);
    await sql`
      create unique index sign_in_codes_by_browser on sign_in_codes (browser_hash)
       where browser_hash is not null`.execute(database);
  },
};
