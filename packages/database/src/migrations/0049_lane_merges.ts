/**
 * Merges of people for delivery queues with waiting deliveries: deliveries about the merged person and those about the
 * other one are about one person from then on, and keep their order (`delivery/lane-merges.ts`).
 *
 * No foreign key to lanes: it would lock the lane's row in the merge's transaction, which every commit batch updates.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const laneMerges: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table lane_merges (
        environment_id int not null,
        webhook_id int not null,
        person_id bigint not null,
        into_person_id bigint not null,
        -- The last delivery that may be about person_id.
        through_sequence bigint not null,
        primary key (environment_id, webhook_id, person_id)
      )`.execute(database);
    await sql`
      create index lane_merges_into on lane_merges (environment_id, webhook_id, into_person_id)`.execute(
      database,
    );
  },
};
