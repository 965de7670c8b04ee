/** Statements on credentials that the API asks for one at a time. Intake's whole list is in `workspace-keys.ts`. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

/** A key of the app API, in force. */
export interface AppKey {
  readonly environmentId: number;
  readonly credentialId: number;
  readonly name: string;
}

/**
 * The key in force with this SHA-256. The one statement without a tenant: whose key it is is the
 * question. Index: `api_credentials_by_secret`, one row.
 */
export async function findAppKey(
  database: DatabaseOrTransaction,
  secretHash: Buffer,
): Promise<AppKey | undefined> {
  const { rows } = await sql<AppKey>`
    select environment_id as "environmentId", credential_id::int as "credentialId", name
    from api_credentials
    where kind = 'app' and secret_hash = ${secretHash} and coalesce(site_id, '') = '' and revoked_at is null
      and (expires_at is null or expires_at > now())`.execute(database);
  return rows[0];
}
