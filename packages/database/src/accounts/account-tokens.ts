/**
 * Tokens of service accounts, for the guard of account routes.
 *
 * A token is in force until it is revoked, has expired by Postgres' clock, or its account is closed. One of a program that a
 * user let in also ends when the user is removed or has another role. It is refused while its user lacks a second factor that
 * the account requires. The caller, which
 * keeps the answer for a moment, checks the expiry against its own clock too.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { canonicalAddress } from '@sluice/domain/delivery/network-address';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { IS_FACTOR_MISSING } from './user-factor.ts';

export interface AccountToken {
  readonly accountId: number;
  readonly credentialId: number;
  readonly serviceAccountId: number;
  /** SHA-256 of the secret that it has now. */
  readonly secretHash: Buffer;
  readonly role: Role;
  readonly isReadOnly: boolean;
  readonly scopes: readonly string[];
  /** CIDR blocks. Empty: any address. */
  readonly ipAllowlist: readonly string[];
  /** Of a program whose account requires two factors, and whose user has only one. */
  readonly isFactorMissing: boolean;
  readonly expiresAt: Date | null;
}

const TOKEN = sql`
  select c.account_id::int as "accountId", c.credential_id::int as "credentialId",
         c.service_account_id as "serviceAccountId", c.secret_hash as "secretHash", s.role, c.is_read_only as "isReadOnly",
         c.scopes, c.ip_allowlist as "ipAllowlist", c.expires_at as "expiresAt",
         ${IS_FACTOR_MISSING} as "isFactorMissing"
    from api_credentials c
    join service_accounts s
      on s.account_id = c.account_id and s.service_account_id = c.service_account_id
    join accounts a on a.account_id = c.account_id
   where c.kind = 'service_account' and c.revoked_at is null and a.status <> 'closed'
     and (c.expires_at is null or c.expires_at > now())
     and (c.for_user_id is null or exists (
           select from users u
            where u.account_id = c.account_id and u.user_id = c.for_user_id and u.status = 'active' and u.role = s.role))`;

/**
 * The token with this SHA-256. A statement without a tenant, since whose token it is is the question. Indexes:
 * `api_credentials_by_secret`, then two primary keys.
 */
export async function findAccountToken(
  database: DatabaseOrTransaction,
  secretHash: Buffer,
): Promise<AccountToken | undefined> {
  const { rows } = await sql<AccountToken>`
    ${TOKEN} and c.secret_hash = ${secretHash} and coalesce(c.site_id, '') = ''`.execute(database);
  return rows[0];
}

/** The token that an access token was exchanged for. Index: primary keys. */
export async function findAccountTokenById(
  database: DatabaseOrTransaction,
  accountId: number,
  credentialId: number,
): Promise<AccountToken | undefined> {
  const { rows } = await sql<AccountToken>`
    ${TOKEN} and c.account_id = ${accountId} and c.credential_id = ${credentialId}`.execute(
    database,
  );
  return rows[0];
}

/** Notes the time and address of a credential's last use. Index: primary key. */
export async function recordCredentialUse(
  database: DatabaseOrTransaction,
  accountId: number,
  credentialId: number,
  ip: string,
  nowMs: number,
): Promise<void> {
  await sql`
    update api_credentials set last_used_at = ${new Date(nowMs)}, last_used_ip = ${canonicalAddress(ip)}
     where account_id = ${accountId} and credential_id = ${credentialId}`.execute(database);
}
