/**
 * All secrets of the installation that are stored encrypted.
 *
 * They are the secrets of webhooks and workspaces, the second factors of users, and the client secrets of accounts at
 * their identity providers. This file cannot decrypt them.
 *
 * An encrypted column that is missing here would be lost with the key that encrypted it. Tokens (`webhook-tokens.ts`)
 * are left out: a worker that cannot decrypt one fetches another. Secrets of deleted webhooks are left out on purpose:
 * they send no more requests.
 */
import { clientSecretContext } from '@sluice/domain/accounts/identity-provider';
import { secondFactorContext } from '@sluice/domain/accounts/second-factor';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Whose a secret is. Numbers that do not name it are 0. */
export interface SecretOwner {
  readonly environmentId: number;
  readonly webhookId: number;
  readonly accountId: number;
  readonly userId: number;
}

/** A secret with its place, so that it can be replaced there. */
export interface StoredSecret extends SecretOwner {
  /**
   * The key of a workspace; the key of a webhook, its next one, its headers, and its client certificate and OAuth2
   * client; the second factor of a user; the client secret of an account at its identity provider.
   */
  readonly place:
    | 'environment'
    | 'webhook'
    | 'next'
    | 'headers'
    | 'credentials'
    | 'second_factor'
    | 'client_secret';
  readonly stored: string;
}

/** With the display name of its webhook, its workspace, its user, or its provider. */
export interface NamedSecret extends StoredSecret {
  readonly name: string;
}

/** The context that is authenticated with the secret of this owner. */
export function contextOf({ environmentId, accountId, userId }: SecretOwner): string {
  if (accountId === 0) return secretContext(environmentId);
  return userId === 0 ? clientSecretContext(accountId) : secondFactorContext(accountId, userId);
}

const WEBHOOK_SECRETS = [
  ['webhook', 'signing_key'],
  ['next', 'next_signing_key'],
  ['headers', 'custom_headers'],
  ['credentials', 'endpoint_credentials'],
] as const;

const SECRETS_OF_USERS = sql`(
  select 'second_factor' as place, 0 as environment_id, 0 as webhook_id, f.account_id, f.user_id,
         f.secret as stored, u.email as name
    from second_factors f join users u on (u.account_id, u.user_id) = (f.account_id, f.user_id)
  union all
  select 'client_secret', 0, 0, account_id, 0, client_secret, issuer
    from identity_providers where client_secret is not null
) as secrets_of_users`;

const SECRETS = sql`(
  select 'environment' as place, environment_id, 0 as webhook_id, 0::bigint as account_id, 0 as user_id,
         webhook_signing_key as stored, name
    from environments
  union all
  select secret.place, environment_id, webhook_id, 0, 0, secret.stored, name
    from webhooks
   cross join lateral (values ${sql.join(
     WEBHOOK_SECRETS.map(([place, column]) => sql`(${place}::text, ${sql.ref(column)})`),
   )}) as secret (place, stored)
   where deleted_at is null and secret.stored is not null
  union all
  select place, environment_id, webhook_id, account_id, user_id, stored, name from ${SECRETS_OF_USERS}
) as secrets`;

const OWNER = sql`
  environment_id as "environmentId", webhook_id as "webhookId", account_id::int as "accountId", user_id as "userId"`;

/**
 * All of them, of each webhook its credentials and headers first and the next key before the key. Reads all webhooks and
 * workspaces into memory: for operators.
 */
export async function listSecrets(database: DatabaseOrTransaction): Promise<NamedSecret[]> {
  const { rows } = await sql<NamedSecret>`
    select place, ${OWNER}, stored, name
      from ${SECRETS} order by environment_id, webhook_id, place, account_id, user_id`.execute(
    database,
  );
  return rows;
}

/** Begin of a secret up to its key's id and a colon; empty for a secret that is not encrypted. As the indexes have it. */
const prefixOf = (column: string) =>
  sql`coalesce(substring(left(${sql.ref(column)}, 48) from '^sealed:[^:]+:'), '')`;

/**
 * Secrets of a table that begin otherwise. The two sides and their order make the planner read the index; for `<>` it would
 * read the table.
 */
const secretsWithout = (from: RawBuilder<unknown>, column: string, prefix: string, limit: number) =>
  sql.join(
    [sql`<`, sql`>`].map(
      (side) => sql`
        (select ${from} and ${prefixOf(column)} ${side} ${prefix}
          order by ${prefixOf(column)} limit ${limit})`,
    ),
    sql` union all `,
  );

/**
 * At most `limit` secrets that do not begin with `prefix`: secrets that another key encrypted, and secrets that are not
 * encrypted. By `environments_by_signing_key`, and by the four `webhooks_by_…` of the columns: with 100,000 webhooks a read
 * of all was 0.7 % of a core, idle. Reads all second factors and identity providers, which are few.
 *
 * @param prefix - `sealed:<key id>:`.
 */
export async function listSecretsWithout(
  database: DatabaseOrTransaction,
  prefix: string,
  limit: number,
): Promise<StoredSecret[]> {
  const environments = sql`
    'environment' as place, environment_id, 0 as webhook_id, 0::bigint as account_id, 0 as user_id,
    webhook_signing_key as stored from environments where true`;
  // Postgres drops a condition that always holds, as on the one column that cannot be null, and then misses a partial index by it.
  const webhooks = WEBHOOK_SECRETS.map(([place, column]) =>
    secretsWithout(
      sql`${place}::text, environment_id, webhook_id, 0, 0, ${sql.ref(column)} from webhooks
           where deleted_at is null ${place === 'webhook' ? sql`` : sql`and ${sql.ref(column)} is not null`}`,
      column,
      prefix,
      limit,
    ),
  );
  const { rows } = await sql<StoredSecret>`
    select place, ${OWNER}, stored from (
      ${secretsWithout(environments, 'webhook_signing_key', prefix, limit)}
      union all ${sql.join(webhooks, sql` union all `)}
      union all select place, environment_id, webhook_id, account_id, user_id, stored from ${SECRETS_OF_USERS}
       where not starts_with(stored, ${prefix})
    ) as secrets limit ${limit}`.execute(database);
  return rows;
}

/**
 * One secret for each key that encrypted any, by the key id between the first two colons: a process that opens all of
 * these has every key of the installation. Reads all webhooks and workspaces: for the start of a process.
 */
export async function listEncryptedSamples(
  database: DatabaseOrTransaction,
): Promise<Omit<StoredSecret, 'place'>[]> {
  const { rows } = await sql<Omit<StoredSecret, 'place'>>`
    select distinct on (split_part(stored, ':', 2)) ${OWNER}, stored
      from ${SECRETS}`.execute(database);
  return rows;
}

/** Replaces each secret, unless it was changed meanwhile. In one statement a place. */
export async function replaceSecrets(
  database: DatabaseOrTransaction,
  changes: readonly (StoredSecret & { readonly sealed: string })[],
): Promise<void> {
  const of = (place: StoredSecret['place']) => {
    const some = changes.filter((change) => change.place === place);
    return sql`unnest(
      ${some.map((change) => change.environmentId)}::int[], ${some.map((change) => change.webhookId)}::int[],
      ${some.map((change) => change.accountId)}::bigint[], ${some.map((change) => change.userId)}::int[],
      ${some.map((change) => change.stored)}::text[], ${some.map((change) => change.sealed)}::text[]
    ) as c (environment_id, webhook_id, account_id, user_id, stored, sealed)`;
  };
  await sql`
    update environments set webhook_signing_key = c.sealed from ${of('environment')}
     where environments.environment_id = c.environment_id and webhook_signing_key = c.stored`.execute(
    database,
  );
  await sql`
    update webhooks set signing_key = c.sealed from ${of('webhook')}
     where webhooks.environment_id = c.environment_id and webhooks.webhook_id = c.webhook_id
       and signing_key = c.stored`.execute(database);
  await sql`
    update webhooks set next_signing_key = c.sealed from ${of('next')}
     where webhooks.environment_id = c.environment_id and webhooks.webhook_id = c.webhook_id
       and next_signing_key = c.stored`.execute(database);
  await sql`
    update webhooks set custom_headers = c.sealed from ${of('headers')}
     where webhooks.environment_id = c.environment_id and webhooks.webhook_id = c.webhook_id
       and custom_headers = c.stored`.execute(database);
  await sql`
    update webhooks set endpoint_credentials = c.sealed from ${of('credentials')}
     where webhooks.environment_id = c.environment_id and webhooks.webhook_id = c.webhook_id
       and endpoint_credentials = c.stored`.execute(database);
  await sql`
    update second_factors f set secret = c.sealed from ${of('second_factor')}
     where (f.account_id, f.user_id) = (c.account_id, c.user_id) and f.secret = c.stored`.execute(
    database,
  );
  await sql`
    update identity_providers p set client_secret = c.sealed from ${of('client_secret')}
     where p.account_id = c.account_id and p.client_secret = c.stored`.execute(database);
}
