/**
 * Identifiers of people who were deleted in the last 30 days. A call that was acknowledged before the deletion, and
 * waited in the disk buffer of an intake, does not make a new person of them after it.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const deletedIdentifiers: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table deleted_identifiers (
        -- When intake took the call that deletes, by its clock.
        deleted_at timestamptz not null,
        environment_id int not null,
        kind text collate "C" not null,
        value text collate "C" not null,
        primary key (environment_id, kind, value)
      )`.execute(database);
    // Those to be forgotten.
    await sql`create index deleted_identifiers_by_time on deleted_identifiers (deleted_at)`.execute(
      database,
    );
  },
};
