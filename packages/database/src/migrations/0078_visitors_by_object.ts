/** Index of visitors by the objects to which they will relate somebody. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const visitorsByObject: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Most visitors have no relationship. Numbers of objects are keys there.
    await sql`
      create index visitors_by_object on visitors using gin ((profile -> 'relationships'))
        where profile -> 'relationships' <> '{}'`.execute(database);
  },
};
