/** Statements on credentials that the API asks for one at a time. Intake's whole list is in `workspace-keys.ts`. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { IS_FACTOR_MISSING } from './user-factor.ts';

/** A key of the app API, in force. */
export interface AppKey {
  readonly accountId: number;
  readonly environmentId: number;
  readonly credentialId: number;
  readonly name: string;
  /** For GET alone. */
  readonly isReadOnly: boolean;
  /** Addresses and CIDR blocks that it may be used from. Empty: any address. */
  readonly ipAllowlist: readonly string[];
  /** Of a program whose account requires two factors, and whose user has only one. */
  readonly isFactorMissing: boolean;
}

/**
 * The key in force with this SHA-256. A statement without a tenant, since whose key it is is the question. No key of
 * a deleted workspace or a closed account. The key of a program ends if its user left the workspace or lost the right. Indexes: `api_credentials_by_secret`, one row, then two primary keys.
 */
export async function findAppKey(
  database: DatabaseOrTransaction,
  secretHash: Buffer,
): Promise<AppKey | undefined> {
  const { rows } = await sql<AppKey>`
    select c.account_id::int as "accountId", c.environment_id as "environmentId", c.credential_id::int as "credentialId", c.name,
           c.is_read_only as "isReadOnly", c.ip_allowlist as "ipAllowlist",
           ${IS_FACTOR_MISSING} as "isFactorMissing"
    from api_credentials c
    join environments e on e.account_id = c.account_id and e.environment_id = c.environment_id
    join accounts a on a.account_id = c.account_id
    where c.kind = 'app' and c.secret_hash = ${secretHash} and coalesce(c.site_id, '') = '' and c.revoked_at is null
      and (c.expires_at is null or c.expires_at > now())
      and e.deleted_at is null and a.status <> 'closed'
      and (c.for_user_id is null or exists (
            select from users u
              join memberships m on m.account_id = u.account_id and m.user_id = u.user_id
             where u.account_id = c.account_id and u.user_id = c.for_user_id and m.environment_id = c.environment_id
               and u.status = 'active' and (c.is_read_only or u.role = 'account_admin')))`.execute(
    database,
  );
  return rows[0];
}
