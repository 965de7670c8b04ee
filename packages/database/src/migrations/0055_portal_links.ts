/**
 * Links to the portal: each opens a set of webhooks of one workspace to an engineer of a customer, once. The session that
 * it opens is in the same row.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const portalLinks: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table portal_links (
        environment_id int not null,
        portal_link_id text collate "C" not null,
        label text not null,
        capabilities text[] not null,
        -- That may be chosen; null: those of the webhooks stay.
        event_types text[],
        -- Of webhooks that are made in the portal; null: every event of the chosen types.
        attribute_filters jsonb,
        return_url text,
        theme jsonb not null,
        -- SHA-256 of the code in the link, and of the cookie, which are not kept.
        code_hash bytea not null,
        session_hash bytea,
        -- Times of Postgres' clock.
        created_at timestamptz not null default now(),
        code_ends_at timestamptz not null,
        ends_at timestamptz not null,
        opened_at timestamptz,
        primary key (environment_id, portal_link_id)
      )`.execute(database);
    await sql`create index portal_links_by_end on portal_links (ends_at)`.execute(database);
    await sql`create index portal_links_open on portal_links (environment_id, ends_at)`.execute(
      database,
    );
    await sql`
      create table portal_link_webhooks (
        environment_id int not null,
        portal_link_id text collate "C" not null,
        webhook_id int not null,
        primary key (environment_id, portal_link_id, webhook_id),
        foreign key (environment_id, portal_link_id) references portal_links on delete cascade
      )`.execute(database);
    await sql`alter table environments add column portal_origins text[] not null default '{}'`.execute(
      database,
    );

    await sql`
      alter table audit_logs add column portal_link_id text collate "C", add column portal_label text,
        drop constraint audit_logs_actor_type_check`.execute(database);
    // Not checked against the rows that there are, which the former one has checked.
    await sql`
      alter table audit_logs add constraint audit_logs_actor_type_check
        check (actor_type in ('user', 'service_account', 'portal', 'system')) not valid`.execute(
      database,
    );
  },
};
