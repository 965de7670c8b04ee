/**
 * Endpoint version at a replay's last claim (`0034_endpoint_versions.ts`).
 *
 * If the webhook has another one, earlier failures do not count against the present endpoint, and the replay is probed
 * at once.
 *
 * `webhook_replays.endpoint`, which had this role before, is still written for processes of the version before, and may
 * be dropped in the next one. Replays that wait get 0, so they are probed once more than they need to be.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const replayEndpointVersions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table webhook_replays add column endpoint_version int not null default 0`.execute(
      database,
    );
  },
};
