/** Identity providers of accounts, for the sign-in to the console. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const identityProviders: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table identity_providers (
        account_id bigint primary key references accounts on delete cascade,
        issuer text not null,
        client_id text not null,
        -- Encrypted, as the secrets of webhooks are. Null: its encryption key was lost.
        client_secret text,
        is_required boolean not null default false,
        counts_as_two_factors boolean not null default false,
        -- Of people who are no users yet; null: they are refused.
        new_user_role text check (new_user_role in ('member', 'billing_admin')),
        new_user_environment_ids int[] not null default '{}',
        -- When an account_admin signed in by this issuer and client first.
        admin_signed_in_at timestamptz,
        created_at timestamptz not null default now(),
        updated_at timestamptz not null default now(),
        check (admin_signed_in_at is not null or not is_required)
      )`.execute(database);
    // A domain leads to one provider, before it is known who signs in.
    await sql`
      create table identity_provider_domains (
        domain text collate "C" primary key,
        account_id bigint not null references accounts on delete cascade
      )`.execute(database);
    await sql`
      create index identity_provider_domains_by_account on identity_provider_domains (account_id)`.execute(
      database,
    );
    await sql`
      create table provider_sign_ins (
        account_id bigint not null references identity_providers on delete cascade,
        -- SHA-256 of what the provider gives back, and of the cookie, which are not kept.
        state_hash bytea not null,
        browser_hash bytea not null,
        -- Of the provider when it was begun.
        issuer text not null,
        client_id text not null,
        -- By Postgres' clock.
        started_at timestamptz not null default now(),
        primary key (account_id, state_hash)
      )`.execute(database);
    await sql`create index provider_sign_ins_by_start on provider_sign_ins (started_at)`.execute(
      database,
    );
    await sql`
      create table user_identities (
        account_id bigint not null,
        user_id int not null,
        issuer text not null,
        subject text not null,
        primary key (account_id, user_id),
        foreign key (account_id, user_id) references users on delete cascade
      )`.execute(database);
    await sql`
      create unique index user_identities_by_subject on user_identities (account_id, issuer, subject)`.execute(
      database,
    );
    await sql`
      alter table console_sessions
        drop constraint console_sessions_way_check,
        add constraint console_sessions_way_check check (way in ('code', 'demo', 'token', 'provider'))`.execute(
      database,
    );
  },
};
