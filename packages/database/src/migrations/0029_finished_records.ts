/** Sent outbox entries and applied events of the vendor, by age. For clearing them away. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const finishedRecords: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index outbox_told on outbox (created_at) where next_attempt_at is null`.execute(
      database,
    );
    await sql`
      create index vendor_events_settled on vendor_events (settled_at) where settled_at is not null`.execute(
      database,
    );
  },
};
