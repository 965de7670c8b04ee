/**
 * Dead-lettered operations: acknowledged, and not applied because of a fault of ours. Each is written in
 * the transaction that applies its neighbours, and leaves when its commit batch has been queued again.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface DeadLetteredOperation {
  readonly environmentId: number;
  /** ULID; the id of the commit batch that it comes back in. */
  readonly parkedId: string;
  /** The commit batch that it came in. */
  readonly envelopeId: string;
  /** JSON. */
  readonly operation: string;
  /** The fault, for the developer. */
  readonly error: string;
}

export async function insertDeadLetteredOperation(
  transaction: DatabaseOrTransaction,
  deadLettered: DeadLetteredOperation,
): Promise<void> {
  const { environmentId, parkedId, envelopeId, operation, error } = deadLettered;
  await sql`
    insert into parked_operations (environment_id, parked_id, envelope_id, operation, error)
    values (${environmentId}, ${parkedId}, ${envelopeId}, ${operation}, ${error})`.execute(
    transaction,
  );
}

/** Of all workspaces, the oldest first. Reads the whole table, which a fault fills. */
export async function listDeadLetteredOperations(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<DeadLetteredOperation[]> {
  const { rows } = await sql<DeadLetteredOperation>`
    select environment_id as "environmentId", parked_id as "parkedId",
           envelope_id as "envelopeId", operation, error
      from parked_operations order by parked_id limit ${limit}`.execute(database);
  return rows;
}

/** Of all workspaces; stops counting at `countMax`. */
export async function countDeadLetteredOperations(
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
export async function deleteDeadLetteredOperation(
  database: DatabaseOrTransaction,
  environmentId: number,
  parkedId: string,
): Promise<void> {
  await sql`
    delete from parked_operations
     where environment_id = ${environmentId} and parked_id = ${parkedId}`.execute(database);
}
