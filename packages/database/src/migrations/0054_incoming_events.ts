/** Incoming events that a webhook wants: `domain/src/delivery/incoming-subscription.ts`. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const incomingEvents: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table webhooks
        -- Of tracked events those with one of these names; null: all.
        add column event_names text[] collate "C" check (cardinality(event_names) > 0),
        add column with_imports boolean not null default false,
        add column with_late boolean not null default false,
        add column with_person_attributes boolean not null default false,
        add column takes_incoming boolean not null generated always as (
          events && '{event,page,screen,identify,group,delete,message,*}'::text[]) stored`.execute(
      database,
    );
    // Each commit batch looks into it, for workspaces of which most have no such webhook.
    await sql`
      create index webhooks_of_incoming on webhooks (environment_id)
       where takes_incoming and not disabled`.execute(database);
  },
};
