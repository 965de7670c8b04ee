/**
 * Episodes of failure: their start, the first given up delivery, and the alerts that were sent. An episode ends with
 * the first success.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const webhooksWatched: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table lanes
        add column failing_since timestamptz,
        add column abandoned_sequence bigint,
        add column is_failure_told boolean not null default false,
        add column is_abandonment_told boolean not null default false`.execute(database);
    await sql`update lanes set failing_since = now() where state = 'failing'`.execute(database);
    // listUntoldEnvironments: the installation's, not a workspace's. A healthy lane never changes the index.
    await sql`
      create index lanes_untold on lanes (environment_id)
       where failing_since is not null and not is_failure_told
          or abandoned_sequence is not null and not is_abandonment_told`.execute(database);
  },
};
