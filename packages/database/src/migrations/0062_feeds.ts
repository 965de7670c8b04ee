/**
 * Feeds (`feeds/feeds.ts`): a subscription that is read and not sent. Its row is a webhook's without an endpoint, so that the
 * statements which log for webhooks log for it, and its lane is paused for good: up to the lane's cursor it is forgotten.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const feeds: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table webhooks add column feed_name text collate "C"`.execute(database);
    await sql`
      create unique index webhooks_feeds on webhooks (environment_id, feed_name)
       where feed_name is not null and deleted_at is null`.execute(database);
    // The size of a part of a feed's log, so that it is measured only once.
    await sql`
      create table feed_chunks (
        environment_id int not null,
        webhook_id int not null,
        through_sequence bigint not null,
        size_bytes bigint not null,
        -- When the last delivery of it was logged, by Postgres' clock.
        ended_at timestamptz not null,
        primary key (environment_id, webhook_id, through_sequence)
      )`.execute(database);
  },
};
