/**
 * Workspaces and webhooks for tests, made without the API. Tests of delivery queues, deliveries and imports begin with
 * them. A workspace's number is the test's to choose, so that several tests can share a database.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { insertWebhook, type NewWebhook, type Webhook } from '../webhooks/webhooks.ts';

/** A workspace of account 1, which is made with the first one. Its webhooks sign with `key of ` and its number. */
export async function insertTestWorkspace(
  database: DatabaseOrTransaction,
  environmentId: number,
  signingKey = `key of ${environmentId}`,
): Promise<void> {
  await sql`insert into accounts (account_id, name) values (1, 'Test') on conflict do nothing`.execute(
    database,
  );
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    values (1, ${environmentId}, 'Test', ${signingKey})`.execute(database);
}

/** The keys of a workspace for each API. */
export interface WorkspaceKeys {
  readonly environmentId: number;
  readonly writeKey: string;
  readonly siteId: string;
  readonly apiKey: string;
  readonly appKey: string;
}

/** Puts keys of a workspace of account 1 in force. */
export async function insertTestKeys(
  database: DatabaseOrTransaction,
  { environmentId, writeKey, siteId, apiKey, appKey }: WorkspaceKeys,
): Promise<void> {
  await sql`
    insert into api_credentials (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint)
    select 1, ${environmentId}, kind, 'Test', site_id, sha256(convert_to(secret, 'UTF8')), right(secret, 4)
    from (values ('pipelines', null, ${writeKey}), ('track', ${siteId}, ${apiKey}), ('app', null, ${appKey}))
      as keys (kind, site_id, secret)`.execute(database);
}

/**
 * A webhook of the workspace, with an empty lane. It wants only `customer_subscribed`, unless `settings` has other
 * types.
 */
export async function insertTestWebhook(
  database: DatabaseOrTransaction,
  environmentId: number,
  settings: Partial<NewWebhook> = {},
): Promise<Webhook> {
  const webhook = await insertWebhook(database, environmentId, {
    name: 'Hook',
    endpoint: 'http://receiver.test/',
    events: ['customer_subscribed'],
    disabled: false,
    fullResolution: false,
    withContent: false,
    ...settings,
  });
  if (!webhook) throw new Error(`no workspace ${environmentId}`);
  return webhook;
}
