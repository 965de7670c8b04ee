/** Where an envelope is in a trace (W3C `traceparent`), for the deliveries that it brings about; null but for what is traced. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const envelopeTraces: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table envelopes add column traceparent text collate "C"`.execute(database);
  },
};
