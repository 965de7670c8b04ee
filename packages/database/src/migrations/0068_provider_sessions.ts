/** Ends of a provider's sessions: their email domain, its daily proof, and the sign-out at the provider. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const providerSessions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table console_sessions
        -- Of the address that the provider named; null in sessions of other ways, and in those from before.
        add column email_domain text,
        -- The ID token, encrypted by the cookie, which is not kept.
        add column id_token text`.execute(database);
    await sql`alter table provider_sign_ins add column return_path text`.execute(database);
    await sql`
      alter table identity_provider_domains
        -- The TXT record that proved the domain. Null: nobody asked for one, or it was proved before this column.
        add column record_text text,
        add column check_due_at timestamptz not null default now() + interval '1 day',
        -- Checks in a row that found no such record.
        add column missing_count smallint not null default 0`.execute(database);
    await sql`
      create index identity_provider_domains_by_check on identity_provider_domains (check_due_at)`.execute(
      database,
    );
  },
};
