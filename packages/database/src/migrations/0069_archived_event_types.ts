/** An archived event type is refused by publish; its versions stay, and it can be brought back. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const archivedEventTypes: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table event_types
        -- Of the version in force; false of earlier ones.
        add column is_archived boolean not null default false`.execute(database);
  },
};
