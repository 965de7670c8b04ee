/** Second factors of users. Also sessions that a token of the account opens. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const secondFactors: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table second_factors (
        account_id bigint not null,
        user_id int not null,
        -- Encrypted, as the secrets of webhooks are.
        secret text not null,
        -- Null while it is being set up: it opens nothing then.
        confirmed_at timestamptz,
        -- Of the latest code that was used; codes up to it are over.
        last_step bigint not null default 0,
        primary key (account_id, user_id),
        foreign key (account_id, user_id) references users on delete cascade
      )`.execute(database);
    await sql`
      create table recovery_codes (
        account_id bigint not null,
        user_id int not null,
        -- SHA-256 of the code, which is not kept.
        code_hash bytea not null,
        used_at timestamptz,
        primary key (account_id, user_id, code_hash),
        foreign key (account_id, user_id) references second_factors on delete cascade
      )`.execute(database);

    await sql`
      alter table console_sessions
        alter column user_id drop not null,
        add column has_second_factor boolean not null default false,
        -- Of a session that a token opened: the token, and the SHA-256 of the secret that it had.
        add column credential_id bigint,
        add column credential_secret_hash bytea,
        drop constraint console_sessions_way_check,
        add constraint console_sessions_way_check check (way in ('code', 'demo', 'token')),
        add constraint console_sessions_owner check (
          num_nonnulls(user_id, credential_id) = 1
          and (credential_id is null) = (credential_secret_hash is null)),
        add constraint console_sessions_credential foreign key (account_id, credential_id)
          references api_credentials (account_id, credential_id) on delete cascade`.execute(
      database,
    );
    await sql`
      create index console_sessions_by_credential on console_sessions (account_id, credential_id)
       where credential_id is not null`.execute(database);
  },
};
