/**
 * Version of a webhook's endpoint, beside the webhook and its lane.
 *
 * It counts how often the webhook was sent elsewhere or enabled. A statement that waited for the lane meanwhile sees
 * the lane as it is now and the webhook as it was, and notices the difference by this (`lanes.ts`).
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const endpointVersions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // In the order in which statements of lanes lock them.
    await sql`lock table lanes, webhooks in access exclusive mode`.execute(database);
    await sql`alter table webhooks add column endpoint_version int not null default 0`.execute(
      database,
    );
    await sql`alter table lanes add column endpoint_version int not null default 0`.execute(
      database,
    );
  },
};
