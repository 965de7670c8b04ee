/** Operations that a fault of ours keeps from being applied: kept whole until the fault is mended. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const parkedOperations: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // `operation` is JSON as text: an operation that brought a fault to light must not meet another one in jsonb.
    await sql`
      create table parked_operations (
        environment_id int not null,
        -- A ULID, and the id of the envelope that the operation comes back in.
        parked_id text collate "C" not null,
        parked_at timestamptz not null default now(),
        envelope_id text collate "C" not null,
        operation text not null,
        error text not null,
        primary key (environment_id, parked_id)
      )`.execute(database);
  },
};
