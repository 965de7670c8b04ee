/**
 * Commit batches applied workspace by workspace, while a node is away.
 *
 * | row of `envelopes` | meaning |
 * |---|---|
 * | the batch's id, -1 operations | it is applied in parts only, and a claim of the whole is refused |
 * | the batch's id, `/` and a workspace | this part is applied (written with its effects) |
 * | the batch's id and `/` | all parts are applied, and the batch with them |
 *
 * Rows are only added, so any process may stop at any moment. A process writes the first row before it claims a part. A
 * mark names no gate of merges: without that the trigger of an older worker would wait for every open claim.
 *
 * Beside `commit-batches.ts`, which claims wholes and parts.
 */
import { sql } from 'kysely';
import { endIdOf, wholeIdOf } from '@sluice/domain/operations/envelope';
import { integerColumn, textColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { tryToKeepMergesOff } from '../people/merge-gate.ts';

const IN_PARTS = -1;

/** Thrown by a claim of a whole batch that is applied in parts and has not ended. */
export class AppliedInParts extends Error {
  constructor(envelopeIds: readonly string[]) {
    super(`commit batches are applied workspace by workspace: ${envelopeIds.join(', ')}`);
  }
}

/**
 * From its commit on, the batches are applied in parts; a batch that is applied stays so. Waits for a transaction
 * that has claimed one of them. By the primary key.
 */
export async function beginParts(
  database: DatabaseOrTransaction,
  envelopeIds: readonly string[],
): Promise<void> {
  if (envelopeIds.length === 0) return;
  await sql`
    insert into envelopes (envelope_id, operation_count)
    select envelope_id, ${IN_PARTS}::int
      from unnest(${envelopeIds}::text[]) as envelope_id, (select ${tryToKeepMergesOff(false)}) as gate
     order by envelope_id
    on conflict (envelope_id) do nothing`.execute(database);
}

/** Records that all parts of the batches are applied. By the primary key. */
export async function endParts(
  database: DatabaseOrTransaction,
  batches: readonly { readonly id: string; readonly operationCount: number }[],
): Promise<void> {
  if (batches.length === 0) return;
  await sql`
    insert into envelopes (envelope_id, operation_count)
    select envelope_id, operation_count
      from unnest(${textColumn(batches, ({ id }) => endIdOf(id))}::text[],
                  ${integerColumn(batches, (each) => each.operationCount)}::int[]) as ended (envelope_id, operation_count),
           (select ${tryToKeepMergesOff(false)}) as gate
     order by envelope_id
    on conflict (envelope_id) do nothing`.execute(database);
}

/** @throws AppliedInParts if one of the batches is applied in parts and has not ended. By the primary key. */
export async function refuseParts(
  transaction: DatabaseOrTransaction,
  envelopeIds: readonly string[],
): Promise<void> {
  const { rows } = await sql<{ envelopeId: string }>`
    select begun.envelope_id as "envelopeId" from envelopes begun
     where begun.envelope_id = any (${envelopeIds}::text[]) and begun.operation_count = ${IN_PARTS}::int
       and not exists (select from envelopes ended where ended.envelope_id = begun.envelope_id || '/')`.execute(
    transaction,
  );
  if (rows.length > 0) throw new AppliedInParts(rows.map(({ envelopeId }) => envelopeId));
}

/** The applied ones of commit batches and of parts. By the primary key. */
export async function listAppliedCommitBatches(
  database: DatabaseOrTransaction,
  envelopeIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const asked = new Set(envelopeIds);
  for (const id of envelopeIds) asked.add(wholeIdOf(id)).add(endIdOf(wholeIdOf(id)));
  const { rows } = await sql<{ envelopeId: string }>`
    select envelope_id as "envelopeId" from envelopes
     where envelope_id = any (${[...asked]}::text[]) and operation_count > ${IN_PARTS}::int`.execute(
    database,
  );
  const found = new Set(rows.map(({ envelopeId }) => envelopeId));
  const isApplied = (id: string): boolean =>
    found.has(id) || found.has(wholeIdOf(id)) || found.has(endIdOf(wholeIdOf(id)));
  return new Set(envelopeIds.filter(isApplied));
}
