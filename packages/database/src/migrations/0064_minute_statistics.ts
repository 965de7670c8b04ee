/**
 * Statistics of each minute of a workspace, for its owner's charts.
 *
 * They count applied and refused calls, by name, and deliveries, by webhook. They are counts, not events, and no charge
 * depends on them.
 *
 * A process adds up its own and writes the sums over its earlier ones, so a repeated write is not counted twice.
 * Readers add the processes up. A row of all names (the empty one) and of all webhooks (0) stands beside the others, so
 * that a chart of a month reads a row a minute.
 *
 * Rows come in the order of time, so an index of their age by blocks is a few kilobytes.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const minuteStatistics: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table event_minutes (
        environment_id int not null,
        name text collate "C" not null,
        minute timestamptz not null,
        process_id text collate "C" not null,
        accepted bigint not null,
        refused bigint not null,
        primary key (environment_id, name, minute, process_id)
      )`.execute(database);
    await sql`create index event_minutes_by_age on event_minutes using brin (minute)`.execute(
      database,
    );
    await sql`
      create table delivery_minutes (
        environment_id int not null,
        webhook_id int not null,
        minute timestamptz not null,
        process_id text collate "C" not null,
        -- Attempts, not deliveries.
        delivered bigint not null,
        failed bigint not null,
        -- Of attempts that got an answer, by the classes of domain/src/delivery/latency-counts.ts.
        latency_counts bigint[] not null,
        primary key (environment_id, webhook_id, minute, process_id)
      )`.execute(database);
    await sql`create index delivery_minutes_by_age on delivery_minutes using brin (minute)`.execute(
      database,
    );
    await sql`
      create index delivery_minutes_of_success on delivery_minutes (environment_id, webhook_id, minute)
       where delivered > 0`.execute(database);
  },
};
