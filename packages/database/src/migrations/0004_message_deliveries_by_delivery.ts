/**
 * Which workspaces know a delivery id: `POST /unsubscribe/{delivery_id}` carries no credentials, so
 * it is the one statement that begins without a workspace. Without the index it would read the whole
 * primary key, and anybody could ask for that. No key of the table changes.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const messageDeliveriesByDelivery: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index message_deliveries_by_delivery
        on message_deliveries (delivery_id, environment_id)`.execute(database);
  },
};
