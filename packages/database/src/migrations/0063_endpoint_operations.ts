/** Settings of an endpoint: days of failure until it is disabled, and its signature schemes. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const endpointOperations: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table webhooks
        -- Null: never.
        add column disable_after_days int check (disable_after_days between 1 and 30),
        add column signing text not null default 'sluice' check (signing in ('sluice', 'standard_webhooks', 'none'))`.execute(
      database,
    );
    await sql`
      create index lanes_failing on lanes (failing_since) where failing_since is not null`.execute(
      database,
    );
  },
};
