/**
 * Indexes by the key that encrypted a secret.
 *
 * Nearly all secrets have the same key, so an index has one value and is small: the rows of a value share one entry.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const secretsByKey: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index environments_by_signing_key on environments
        ((coalesce(substring(left(webhook_signing_key, 48) from '^sealed:[^:]+:'), '')))`.execute(
      database,
    );
    await sql`
      create index webhooks_by_signing_key on webhooks
        ((coalesce(substring(left(signing_key, 48) from '^sealed:[^:]+:'), '')))
       where deleted_at is null`.execute(database);
    for (const column of ['next_signing_key', 'custom_headers', 'endpoint_credentials'])
      await sql`
        create index ${sql.ref(`webhooks_by_${column}`)} on webhooks
          ((coalesce(substring(left(${sql.ref(column)}, 48) from '^sealed:[^:]+:'), '')))
         where deleted_at is null and ${sql.ref(column)} is not null`.execute(database);
  },
};
