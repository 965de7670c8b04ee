/**
 * The lease of an import in a column of its own: workers of an older version, who read every file as UTF-8 with commas,
 * see in `lease_until` one that never ends, and leave the import to a worker who reads it by its form.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const importHolds: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table imports add column held_until timestamptz`.execute(database);
  },
};
