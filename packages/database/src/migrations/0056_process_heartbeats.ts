/**
 * Running processes of the installation, with their reports of every ten seconds. Without a log of changes: after a
 * crash of Postgres the table is empty, and full again ten seconds later.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const processHeartbeats: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create unlogged table process_heartbeats (
        process_id text collate "C" primary key,
        service text not null,
        version text not null,
        host text not null,
        pid int not null,
        -- Times of Postgres' clock.
        started_at timestamptz not null default clock_timestamp(),
        beat_at timestamptz not null,
        report jsonb not null
      ) with (fillfactor = 50)`.execute(database);
  },
};
