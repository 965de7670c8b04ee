/** Outcome of a call with an Idempotency-Key, kept by its own transaction. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const keptOutcomes: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Sealed with the key, as the answer is. Set: the change is made, whether it was answered or not.
    await sql`alter table idempotency_keys add column outcome bytea`.execute(database);
  },
};
