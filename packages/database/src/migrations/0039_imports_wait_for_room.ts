/**
 * Imports that wait for capacity before their file is fetched.
 *
 * They wait until the files of the workspace's other imports are gone (`import-chunks.ts`). A worker that does not know
 * of it takes it at its turn and fails it for want of room, as before.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const importsWaitForRoom: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table imports add column waits_for_room boolean not null default false`.execute(
      database,
    );
  },
};
