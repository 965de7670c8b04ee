/**
 * Operations set aside: acknowledged, and not applied because of a fault of ours. Each is written in
 * the transaction that applies its neighbours, and leaves when its commit batch has been queued again.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface ParkedOperation {
  readonly environmentId: number;
  /** ULID; the id of the commit batch that it comes back in. */
  readonly parkedId: string;
  /** Which commit batch it came in. */
  readonly envelopeId: string;
  /** JSON. */
  readonly operation: string;
  /** The fault, for the developer. */
  readonly error: string;
}

export async function insertParkedOperation(
  transaction: DatabaseOrTransaction,
  parked: ParkedOperation,
): Promise<void> {
  const { environmentId, parkedId, envelopeId, operation, error } = parked;
  await sql`
    insert into parked_operations (environment_id, parked_id, envelope_id, operation, error)
    values (${environmentId}, ${parkedId}, ${envelopeId}, ${operation}, ${error})`.execute(
    transaction,
  );
}

/** Of all workspaces, the longest parked first. Reads the whole table, which a fault fills. */
export async function listParkedOperations(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<ParkedOperation[]> {
  const { rows } = await sql<ParkedOperation>`
    select environment_id as "environmentId", parked_id as "parkedId",
           envelope_id as "envelopeId", operation, error
      from parked_operations order by parked_id limit ${limit}`.execute(database);
  return rows;
}

/** Of all workspaces; stops counting at `countMax`. */
export async function countParkedOperations(
  database: DatabaseOrTransaction,
  countMax: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count
      from (select environment_id from parked_operations limit ${countMax}) as counted`.execute(
    database,
  );
  return rows[0]?.count ?? 0;
}

/** By the primary key. */
export async function deleteParkedOperation(
  database: DatabaseOrTransaction,
  environmentId: number,
  parkedId: string,
): Promise<void> {
  await sql`
    delete from parked_operations
     where environment_id = ${environmentId} and parked_id = ${parkedId}`.execute(database);
}
