/** What intake needs to know of credentials: every key in force and the workspace that it opens. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

export interface WorkspaceKey {
  readonly kind: 'track' | 'pipelines';
  /** Track only. */
  readonly siteId: string | null;
  readonly secretHash: Buffer;
  readonly environmentId: number;
  readonly accountId: string;
  /** The workspace setting: Track v2 may name a person by phone. */
  readonly phoneIdentifies: boolean;
}

/**
 * All keys in force of all tenants. A sequential read by design: intake keeps them in memory
 * (10,000 keys are about 3 MB) so that no call waits for Postgres.
 */
export async function listWorkspaceKeys(database: DatabaseOrTransaction): Promise<WorkspaceKey[]> {
  const { rows } = await sql<WorkspaceKey>`
    select c.kind, c.site_id as "siteId", c.secret_hash as "secretHash",
           c.environment_id as "environmentId", e.account_id as "accountId",
           e.phone_identifies as "phoneIdentifies"
    from api_credentials c
    join environments e on e.environment_id = c.environment_id
    where c.kind in ('track', 'pipelines') and c.revoked_at is null
      and (c.expires_at is null or c.expires_at > now())`.execute(database);
  return rows;
}
