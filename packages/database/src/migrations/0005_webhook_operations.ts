/**
 * Columns for operators of webhooks: the origin of a logged delivery, the head of an answer, and the first opens and
 * clicks of each message.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const webhookOperations: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // A constant default and a null: neither rewrites the table.
    await sql`
      alter table delivery_log
        add column origin text collate "C" not null default 'event' check (origin in ('event', 'resend', 'test')),
        add column resend_of bigint,
        add check ((resend_of is not null) = (origin = 'resend'))`.execute(database);
    await sql`alter table delivery_attempts add column response_head text`.execute(database);

    // A link can be longer than an index entry may be, so that it is its SHA-256 that is kept.
    await sql`
      create table first_engagements (
        environment_id int not null,
        created_at timestamptz not null default now(),
        delivery_id text collate "C" not null,
        metric text collate "C" not null check (metric in ('opened', 'clicked')),
        link_digest bytea not null,
        primary key (environment_id, delivery_id, metric, link_digest)
      )`.execute(database);
  },
};
