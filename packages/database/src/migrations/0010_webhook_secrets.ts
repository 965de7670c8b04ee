/**
 * Signing keys that can be rotated.
 *
 * A webhook has a key and, while it is being rotated, the next one, which takes the place of the first at a time that
 * is written down: every process that reads the row after it uses the next key alone. Keys are sealed text
 * (`platform/src/secrets/encrypted-text.ts`). Earlier keys, and the key of a workspace that was made by hand, may stand
 * here as plain text; the worker seals them at its start (`worker/src/maintenance/encrypt-secrets.ts`).
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const webhookSecrets: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table webhooks
        add column signing_key_made_at timestamptz not null default now(),
        add column next_signing_key text,
        add column next_signing_key_made_at timestamptz,
        -- From here on it is the webhook's key.
        add column next_signs_from timestamptz,
        add column standard_webhooks boolean not null default false,
        add check ((next_signing_key is null) = (next_signs_from is null)),
        add check ((next_signing_key is null) = (next_signing_key_made_at is null))`.execute(
      database,
    );
    await sql`update webhooks set signing_key_made_at = created_at`.execute(database);
    // promoteDueSigningKeys. Not by tenant: it is the installation's, not a workspace's.
    await sql`
      create index webhooks_rotating on webhooks (next_signs_from) where next_signs_from is not null`.execute(
      database,
    );
  },
};
