/** People sign in to the console: the codes that are mailed to them, and their sessions. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const consoleSessions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Before it is known who signs in, so without a tenant.
    await sql`
      create table sign_in_codes (
        sign_in_id bigint generated always as identity primary key,
        email text not null,
        ip text not null,
        started_at timestamptz not null,
        -- Never the code. Null until it is mailed, and where the address is no user's.
        code_hmac bytea,
        code_expires_at timestamptz,
        attempt_count int not null default 0,
        used_at timestamptz
      )`.execute(database);
    await sql`create index sign_in_codes_by_email on sign_in_codes (lower(email), sign_in_id)`.execute(
      database,
    );
    await sql`create index sign_in_codes_by_ip on sign_in_codes (ip, started_at)`.execute(database);

    await sql`
      create table console_sessions (
        account_id bigint not null,
        -- SHA-256 of the cookie, which is not kept.
        session_hash bytea not null,
        -- As the user knows it, to end it.
        session_id bigint generated always as identity,
        user_id int not null,
        way text not null check (way in ('code', 'demo')),
        -- Times of Postgres' clock.
        created_at timestamptz not null default now(),
        last_seen_at timestamptz not null default now(),
        ends_at timestamptz not null,
        ip_addr text not null,
        user_agent text,
        primary key (account_id, session_hash),
        foreign key (account_id, user_id) references users on delete cascade
      )`.execute(database);
    await sql`
      create index console_sessions_by_user on console_sessions (account_id, user_id, session_id)`.execute(
      database,
    );
    await sql`create index console_sessions_by_end on console_sessions (ends_at)`.execute(database);
  },
};
