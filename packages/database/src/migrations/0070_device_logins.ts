/** Logins of programs by a code. Also credentials that act for a user. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const deviceLogins: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Of no account before a user has decided. All times are by Postgres' clock.
    await sql`
      create table device_logins (
        -- SHA-256 of what the program keeps, and of the code that the user types.
        device_hash bytea primary key,
        code_hash bytea not null unique,
        client_name text not null,
        ip_addr text,
        started_at timestamptz not null default now(),
        interval_seconds int not null default 5,
        polled_at timestamptz,
        account_id bigint,
        user_id int,
        -- The workspace that the program may read or manage; null: none.
        environment_id int,
        is_approved boolean,
        foreign key (account_id, user_id) references users on delete cascade
      )`.execute(database);
    await sql`create index device_logins_by_start on device_logins (started_at)`.execute(database);
    await sql`create index device_logins_by_user on device_logins (account_id, user_id)`.execute(
      database,
    );
    // The user for whom a program acts, or null if it acts for the account. A key names the token that it was made with.
    await sql`
      alter table api_credentials add column for_user_id int, add column with_credential_id bigint`.execute(
      database,
    );
    await sql`
      create index api_credentials_by_user on api_credentials (account_id, for_user_id)
       where for_user_id is not null and revoked_at is null`.execute(database);
  },
};
