/**
 * The claim of a commit batch: its row is written in the transaction that writes its effects. So processing is
 * idempotent: a second run of the same commit batch, after a crash or by a stalled worker, finds the row and stops.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { takersOfIncoming } from '../delivery/incoming-subscriptions.ts';
import { refuseParts } from './commit-batch-parts.ts';
import { MERGES_ARE_KEPT_OFF, tryToKeepMergesOff } from '../people/merge-gate.ts';

/** A commit batch to claim. */
export interface CommitBatchClaim {
  readonly envelopeId: string;
  readonly operationCount: number;
  /** Its place in a trace, if it is in one. */
  readonly traceparent: string | null;
}

export interface ClaimedCommitBatches {
  /**
   * In the order of the claims; undefined in place of each commit batch that another transaction has claimed and
   * committed. If the first is undefined, and all are of one shard, all are undefined.
   */
  readonly numbers: readonly (number | undefined)[];
  /** True if no merge goes on or begins before this transaction has ended (`merge-gate.ts`). */
  readonly keepsMergesOff: boolean;
  /** The given workspaces that have a webhook for incoming events. */
  readonly reportingIncoming: readonly number[];
}

/**
 * Claims commit batches for this transaction and numbers them. Waits for a transaction that has claimed one of them and
 * has not ended. By the primary key.
 *
 * If the first one of a shard is applied already, the shard may be another worker's by now: that one may have the
 * second in progress, which is then not among these, and the third would overtake it. So this transaction then claims
 * no batch.
 *
 * It also makes the planner, for this transaction, look keys up by index in all its statements: a set of keys comes
 * from `unnest`, whose size the planner does not know. Left alone, it read all of 200,000 identifiers to find 2,000 of
 * them (109 ms instead of 14) and all people to update 1,000 (50 ms instead of 8). Settings, the gate, and the list of
 * workspaces with a webhook for incoming events are part of this statement, so that they cost no round trip.
 *
 * @param environmentIds - workspaces of the operations, each once.
 * @param triesToKeepMergesOff - keeps merges off, if that needs no waiting.
 * @throws AppliedInParts if a claimed one of them is applied workspace by workspace and not to its end.
 */
export async function claimCommitBatches(
  transaction: DatabaseOrTransaction,
  claims: readonly CommitBatchClaim[],
  environmentIds: readonly number[],
  triesToKeepMergesOff: boolean,
  isOfOneShard = true,
): Promise<ClaimedCommitBatches> {
  const { rows } = await sql<{
    envelopeId: string;
    envelopeNumber: string;
    keepsMergesOff: boolean;
    reportingIncoming: number[] | null;
  }>`${PREPARED}
    insert into envelopes (envelope_id, operation_count, traceparent)
    select c.envelope_id, c.operation_count, c.traceparent
    from unnest(
      ${textColumn(claims, ({ envelopeId }) => envelopeId)}::text[],
      ${integerColumn(claims, ({ operationCount }) => operationCount)}::int[],
      ${textColumn(claims, ({ traceparent }) => traceparent)}::text[]
    ) with ordinality as c (envelope_id, operation_count, traceparent, place), (
      select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
             set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
             ${tryToKeepMergesOff(triesToKeepMergesOff)}
    ) as planner
    order by c.place
    on conflict (envelope_id) do nothing
    returning envelope_id as "envelopeId", envelope_number as "envelopeNumber",
      ${MERGES_ARE_KEPT_OFF} as "keepsMergesOff", ${takersOfIncoming(environmentIds)} as "reportingIncoming"`.execute(
    transaction,
  );
  const numbers = new Map(rows.map((row) => [row.envelopeId, Number(row.envelopeNumber)]));
  if (rows.length < claims.length) {
    const ids = claims.map(({ envelopeId }) => envelopeId);
    await refuseParts(transaction, ids);
  }
  if (isOfOneShard && claims[0] && !numbers.has(claims[0].envelopeId)) {
    await releaseClaims(transaction, [...numbers.keys()]);
    numbers.clear();
  }
  return {
    numbers: claims.map(({ envelopeId }) => numbers.get(envelopeId)),
    keepsMergesOff: rows[0]?.keepsMergesOff === true,
    reportingIncoming: rows[0]?.reportingIncoming ?? [],
  };
}

/** Undoes claims of this transaction. By the primary key. */
async function releaseClaims(
  transaction: DatabaseOrTransaction,
  envelopeIds: readonly string[],
): Promise<void> {
  if (envelopeIds.length === 0) return;
  await sql`delete from envelopes where envelope_id = any (${envelopeIds}::text[])`.execute(
    transaction,
  );
}

/**
 * Of deliveries of one webhook, the ones whose commit batch is traced: place in the trace by sequence. By the primary
 * key of the log, then `envelopes_by_number`.
 *
 * @param firstDay - all of them were logged after this day, `2026-11-20`.
 */
export async function listTraceparents(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  sequences: readonly number[],
  firstDay: string,
): Promise<Map<number, string>> {
  const { rows } = await sql<{ sequence: string; traceparent: string }>`
    select log.sequence, envelopes.traceparent
      from delivery_log log join envelopes using (envelope_number)
     where log.environment_id = ${lane.environmentId} and log.webhook_id = ${lane.webhookId}
       and log.sequence = any (${sequences}::bigint[]) and log.day >= ${firstDay}::date
       and envelopes.traceparent is not null`.execute(database);
  return new Map(rows.map(({ sequence, traceparent }) => [Number(sequence), traceparent]));
}
