/** Decisions that were made once for the whole installation. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const installation: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table installation (
        is_only boolean primary key default true check (is_only),
        shard_count int not null
      )`.execute(database);
  },
};
