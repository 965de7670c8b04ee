/** Position of an envelope in a trace (W3C `traceparent`), for its deliveries. Null if it is not traced. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const envelopeTraces: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table envelopes add column traceparent text collate "C"`.execute(database);
  },
};
