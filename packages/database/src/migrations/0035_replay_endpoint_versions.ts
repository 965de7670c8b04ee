/**
 * Which version of its webhook's endpoint (`0034_endpoint_versions.ts`) a replay was last claimed at: where the webhook has
 * another one, what failed before says nothing about now, and the replay is probed at once.
 *
 * `webhook_replays.endpoint`, which said so before, is still written for processes of the version before, and may be
 * dropped in the next one. Replays that wait get 0, so they are probed once more than they need to be.
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
