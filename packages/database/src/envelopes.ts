/**
 * The claim of an envelope: its row is written in the transaction that writes its effects, so that a
 * second run of the same envelope, after a crash or by a stalled worker, finds it and does nothing.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

/**
 * Claims the envelope for this transaction; false where another has claimed it for good. Waits for a
 * transaction that has claimed it and has not ended. By the primary key.
 */
export async function claimEnvelope(
  transaction: DatabaseOrTransaction,
  envelopeId: string,
  operationCount: number,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into envelopes (envelope_id, operation_count) values (${envelopeId}, ${operationCount})
    on conflict (envelope_id) do nothing`.execute(transaction);
  return numAffectedRows === 1n;
}
