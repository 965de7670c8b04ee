/** Nodes of Citus that have the rows of workspaces. For a worker that meets a node that is away. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { isDistributed } from '../connection/tenant-statements.ts';

/**
 * The node of each workspace. Empty on a plain Postgres. From the catalogue of the coordinator, which asks no node.
 *
 * @param environmentIds - each once.
 */
export async function listTenantNodes(
  database: DatabaseOrTransaction,
  environmentIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (environmentIds.length === 0 || !(await isDistributed(database))) return new Map();
  const { rows } = await sql<{ environmentId: number; node: number }>`
    select t.id as "environmentId", p.groupid as node
      from unnest(${environmentIds}::int[]) as t (id)
      join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('people', t.id)`.execute(
    database,
  );
  return new Map(rows.map(({ environmentId, node }) => [environmentId, node]));
}

/** Looks at the rows of a workspace. By the primary key of people. @throws if the node that has them is away. */
export async function expectNode(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<void> {
  await sql`select person_id from people where environment_id = ${environmentId}::int limit 1`.execute(
    database,
  );
}
