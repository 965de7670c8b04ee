/**
 * The person of a delivery, and the webhook's setting of order.
 *
 * With the person, deliveries about one person are never reordered (`domain/src/delivery/lane.ts`). The setting means
 * that a webhook wants all of its deliveries one after another.
 *
 * Deliveries that older versions have logged have no person here; readers take it from their body
 * (`logged-deliveries.ts`).
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const peopleInOrder: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table delivery_log add column person_id bigint`.execute(database);
    await sql`
      alter table webhooks
        add column ordering text collate "C" not null default 'person' check (ordering in ('person', 'strict'))`.execute(
      database,
    );
  },
};
