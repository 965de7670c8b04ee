/** Options of one webhook: rate, concurrency, headers, and filters of events. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const webhookSendOptions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table webhooks
        add column rate_limit_per_second int check (rate_limit_per_second > 0),
        -- Beside the workers' own maximum.
        add column window_max int check (window_max > 0),
        -- Name to value, as JSON, sealed: a value may be a token.
        add column custom_headers text,
        -- Of domain/src/delivery/attribute-filter.ts.
        add column attribute_filters jsonb`.execute(database);
    // No request before it, if the webhook has a rate limit. Not indexed, so that a lane's row stays heap-only.
    await sql`alter table lanes add column next_start_at timestamptz`.execute(database);
    // listAttributeFilters; most workspaces have no such filter.
    await sql`
      create index webhooks_filtered on webhooks (environment_id) where attribute_filters is not null`.execute(
      database,
    );
  },
};
