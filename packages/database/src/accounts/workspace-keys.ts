/** Valid keys with their workspaces, for intake. */
import { sql } from 'kysely';
import { bigintColumn, integerColumn, timestampColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

export interface WorkspaceKey {
  readonly kind: 'track' | 'pipelines';
  /** Track only. */
  readonly siteId: string | null;
  readonly secretHash: Buffer;
  readonly environmentId: number;
  /** int8, in decimal digits. Absent: not known. */
  readonly credentialId?: string;
  readonly accountId: string;
  /** The workspace setting: Track v2 may name a person by phone. */
  readonly phoneIdentifies: boolean;
  /** Of a Pipelines key that is not saved yet: its credential. */
  readonly testCredentialId?: string | null;
}

/**
 * All keys in force of all tenants, without deleted workspaces and closed accounts. A sequential read by design: intake
 * keeps them in memory (10,000 keys are about 3 MB) so that no call waits for Postgres.
 */
export async function listWorkspaceKeys(database: DatabaseOrTransaction): Promise<WorkspaceKey[]> {
  const { rows } = await sql<WorkspaceKey>`${PREPARED}
    select c.kind, c.site_id as "siteId", c.secret_hash as "secretHash",
           c.environment_id as "environmentId", c.credential_id as "credentialId", e.account_id as "accountId",
           e.phone_identifies as "phoneIdentifies",
           case when c.is_test then c.credential_id end as "testCredentialId"
    from api_credentials c
    join environments e on e.environment_id = c.environment_id
    join accounts a on a.account_id = e.account_id
    where c.kind in ('track', 'pipelines') and c.revoked_at is null
      and (c.expires_at is null or c.expires_at > now())
      and e.deleted_at is null and a.status <> 'closed'`.execute(database);
  return rows;
}

/** The latest use of a key that a process knows of. */
export interface KeyUse {
  readonly accountId: number;
  readonly credentialId: number;
  readonly usedAtMs: number;
}

/**
 * Saves the last use of keys, to the minute. By the primary key, in its order: other processes save uses of the same
 * keys. A use within a minute of the stored one is not written, so a key costs a write a minute however many processes
 * it is used at.
 */
export async function saveKeyUses(
  database: DatabaseOrTransaction,
  uses: readonly KeyUse[],
): Promise<void> {
  if (uses.length === 0) return;
  await sql`
    with due as (
      select c.account_id, c.credential_id, u.used_at
        from unnest(
          ${bigintColumn(uses, (use) => use.accountId)}::bigint[],
          ${bigintColumn(uses, (use) => use.credentialId)}::bigint[],
          ${timestampColumn(uses, (use) => use.usedAtMs)}::timestamptz[]
        ) as u (account_id, credential_id, used_at)
        join api_credentials c on c.account_id = u.account_id and c.credential_id = u.credential_id
       where c.last_used_at is null or c.last_used_at <= u.used_at - interval '50 seconds'
       order by c.account_id, c.credential_id
         for no key update of c
    )
    update api_credentials c set last_used_at = due.used_at from due
     where c.account_id = due.account_id and c.credential_id = due.credential_id`.execute(database);
}

/** A Pipelines key that was made to be tested. */
export interface TestKey {
  readonly environmentId: number;
  readonly credentialId: string;
}

/** Saves keys that an identify call was taken with. By the tenant's credentials, which are few. */
export async function saveTestedKeys(
  database: DatabaseOrTransaction,
  keys: readonly TestKey[],
): Promise<void> {
  if (keys.length === 0) return;
  await sql`
    update api_credentials c set is_test = false
    from unnest(
      ${integerColumn(keys, (key) => key.environmentId)}::int[],
      ${bigintColumn(keys, (key) => Number(key.credentialId))}::bigint[]
    ) as t (environment_id, credential_id)
    where c.environment_id = t.environment_id and c.credential_id = t.credential_id and c.is_test`.execute(
    database,
  );
}
