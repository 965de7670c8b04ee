/**
 * The demo workspace: an account, an environment and credentials that are in the documentation, so
 * that everything can be tried at once. They are no secrets, so they must open nothing that others
 * can reach: whoever calls this decides which of the two functions the address allows.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from './connection.ts';

export const DEMO = {
  accountId: 1,
  environmentId: 1,
  writeKey: 'demo_write_key',
  siteId: 'demo_site',
  apiKey: 'demo_api_key',
  appKey: 'demo_app_key',
  signingKey: 'demo_signing_key',
} as const;

const CREDENTIALS = [
  { kind: 'pipelines', siteId: null, secret: DEMO.writeKey },
  { kind: 'track', siteId: DEMO.siteId, secret: DEMO.apiKey },
  { kind: 'app', siteId: null, secret: DEMO.appKey },
] as const;

/** Creates the demo workspace, or puts its credentials in force again. May be called at every start. */
export async function seedDemoWorkspace(database: Database): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await sql`
      insert into accounts (account_id, name) values (${DEMO.accountId}, 'Demo')
      on conflict (account_id) do nothing`.execute(transaction);
    await sql`
      insert into environments (account_id, environment_id, name, webhook_signing_key)
      values (${DEMO.accountId}, ${DEMO.environmentId}, 'Demo', ${DEMO.signingKey})
      on conflict (environment_id) do nothing`.execute(transaction);
    await advanceIdentities(transaction);
    await sql`
      insert into api_credentials (environment_id, kind, name, site_id, secret_hash, secret_hint)
      select ${DEMO.environmentId}, kind, 'Demo', site_id, secret_hash, secret_hint
      from unnest(
        ${CREDENTIALS.map(({ kind }) => kind)}::text[],
        ${CREDENTIALS.map(({ siteId }) => siteId)}::text[],
        ${CREDENTIALS.map(({ secret }) => hash(secret))}::bytea[],
        ${CREDENTIALS.map(({ secret }) => secret.slice(-4))}::text[]
      ) as demo (kind, site_id, secret_hash, secret_hint)
      on conflict (kind, secret_hash, coalesce(site_id, '')) do update
        set revoked_at = null
        where api_credentials.environment_id = ${DEMO.environmentId}`.execute(transaction);
  });
}

/** Takes the demo credentials out of force, where there are any. Index: `api_credentials_by_secret`. */
export async function revokeDemoCredentials(database: DatabaseOrTransaction): Promise<void> {
  await sql`
    update api_credentials set revoked_at = now()
    where environment_id = ${DEMO.environmentId}
      and secret_hash = any(${CREDENTIALS.map(({ secret }) => hash(secret))}::bytea[])
      and revoked_at is null`.execute(database);
}

/**
 * Rows with ids of our choosing do not move the sequences; the next account must not collide with
 * the demo's. Never backwards: an id that was used and deleted must not come again.
 */
async function advanceIdentities(transaction: DatabaseOrTransaction): Promise<void> {
  await sql`
    select setval(sequence, greatest(newest, pg_sequence_last_value(sequence)))
    from (values
      (pg_get_serial_sequence('accounts', 'account_id')::regclass,
       (select max(account_id) from accounts)),
      (pg_get_serial_sequence('environments', 'environment_id')::regclass,
       (select max(environment_id) from environments)::bigint)
    ) as identity (sequence, newest)`.execute(transaction);
}

const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest();
