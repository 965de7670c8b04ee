/**
 * Position of a call in a trace (W3C `traceparent`). For the worker that goes on with the call's import or replay. Null
 * if it is not traced.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const importAndReplayTraces: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table imports add column traceparent text collate "C"`.execute(database);
    await sql`alter table webhook_replays add column traceparent text collate "C"`.execute(
      database,
    );
  },
};
