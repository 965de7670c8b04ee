/** Two indexes for reads that came later; no key of a table changes. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const lookupIndexes: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Workspaces that know a delivery id: `POST /unsubscribe/{delivery_id}` carries no credentials, so it is the one
    // statement that begins without a workspace. Without the index it would read the whole primary key, and any caller
    // could ask for that.
    await sql`
      create index message_deliveries_by_delivery
        on message_deliveries (delivery_id, environment_id)`.execute(database);

    // The people of an object, a page at a time: with the person in it a page is a range, however
    // many people the object has.
    await sql`drop index relationships_by_object`.execute(database);
    await sql`
      create index relationships_by_object
        on relationships (environment_id, object_number, person_id)`.execute(database);
  },
};
