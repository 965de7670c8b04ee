/** Where the call that asked for an import or a replay is in a trace (W3C `traceparent`), for the worker that goes on with it; null but for what is traced. */
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
