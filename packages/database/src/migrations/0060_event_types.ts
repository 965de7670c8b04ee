/** Event types of published messages, with the versions of their schemas: `webhooks/event-types.ts`. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const eventTypes: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table event_types (
        environment_id int not null,
        name text collate "C" not null,
        version int not null,
        description text not null,
        -- JSON as a text: jsonb refuses the escape of NUL. Null: any payload.
        schema text,
        made_at timestamptz not null default now(),
        -- The one that is in force.
        is_current boolean not null,
        primary key (environment_id, name, version)
      )`.execute(database);
    await sql`
      create unique index event_types_current on event_types (environment_id, name) where is_current`.execute(
      database,
    );
    // Grows with each change of the workspace's types, so that intake reads only new changes.
    await sql`
      create table event_type_sets (
        environment_id int primary key,
        revision bigint not null
      )`.execute(database);
  },
};
