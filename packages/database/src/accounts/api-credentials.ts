/**
 * Credentials of an account, of every kind, for their owners. `api-credential-changes.ts` makes, rotates and revokes
 * them.
 *
 * Statements find by the primary key (account_id, credential_id).
 */
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export type CredentialKind = 'track' | 'pipelines' | 'app' | 'service_account';

export interface Credential {
  readonly credentialId: number;
  readonly kind: CredentialKind;
  readonly name: string;
  /** Null for service accounts. */
  readonly environmentId: number | null;
  readonly serviceAccountId: number | null;
  /** Track only. */
  readonly siteId: string | null;
  readonly secretHint: string;
  /** Of its service account; null for the keys of a workspace. */
  readonly role: Role | null;
  readonly scopes: readonly string[];
  readonly ipAllowlist: readonly string[];
  readonly isReadOnly: boolean;
  /**
   * A Pipelines key without a successful identify call yet: until then it accepts only identify calls
   * (`ingestion-webhooks.md` §5).
   */
  readonly isTest: boolean;
  readonly createdByUserId: number | null;
  readonly lastUsedAt: Date | null;
  readonly lastUsedIp: string | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly createdAt: Date;
}

/** The words of the wire for our kinds. */
export const CREDENTIAL_TYPES = {
  track: 'tracking',
  pipelines: 'pipelines',
  app: 'app',
  service_account: 'service_account',
} as const;

/** Neither revoked nor expired. */
export const isInForce = (nowMs: number) =>
  sql`(revoked_at is null and (expires_at is null or expires_at > ${new Date(nowMs)}))`;

/** A row of `api_credentials` as it is read, with the role of its service account by that one's primary key. */
export const CREDENTIAL_COLUMNS = sql`
  credential_id::int as "credentialId", kind, name, environment_id as "environmentId",
  service_account_id as "serviceAccountId", site_id as "siteId", secret_hint as "secretHint", scopes,
  (select s.role from service_accounts s
    where s.account_id = api_credentials.account_id
      and s.service_account_id = api_credentials.service_account_id) as role,
  ip_allowlist as "ipAllowlist", is_read_only as "isReadOnly", is_test as "isTest", created_by_user_id as "createdByUserId",
  last_used_at as "lastUsedAt", last_used_ip as "lastUsedIp", expires_at as "expiresAt",
  revoked_at as "revokedAt", created_at as "createdAt"`;

/**
 * Credentials of the account, or of one workspace of it, by id, also revoked and expired ones. At most `limit`: the
 * ones in force first, and then the latest.
 */
export async function listCredentials(
  database: DatabaseOrTransaction,
  accountId: number,
  environmentId: number | undefined,
  nowMs: number,
  limit: number,
): Promise<Credential[]> {
  const { rows } = await sql<Credential>`
    select ${CREDENTIAL_COLUMNS} from api_credentials
     where account_id = ${accountId}
       and (${environmentId ?? null}::int is null or environment_id = ${environmentId ?? null}::int)
     order by ${isInForce(nowMs)} desc, credential_id desc limit ${limit}`.execute(database);
  return rows.toSorted((one, other) => one.credentialId - other.credentialId);
}

export async function findCredential(
  database: DatabaseOrTransaction,
  accountId: number,
  credentialId: number,
): Promise<Credential | undefined> {
  const { rows } = await sql<Credential>`
    select ${CREDENTIAL_COLUMNS} from api_credentials
     where account_id = ${accountId} and credential_id = ${credentialId}`.execute(database);
  return rows[0];
}
