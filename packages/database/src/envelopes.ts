/**
 * The claim of an envelope: its row is written in the transaction that writes its effects, so that a
 * second run of the same envelope, after a crash or by a stalled worker, finds it and does nothing.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import type { LaneKey } from './lanes.ts';

/**
 * Claims the envelope for this transaction and numbers it, with where it is in a trace, if it is in one; undefined where another has claimed it for good. Waits for a
 * transaction that has claimed it and has not ended. By the primary key.
 *
 * Also tells the planner, for this transaction, that all its statements look keys up by index: a
 * set of keys comes from `unnest`, of which it knows too little. Left alone, it read all of 200,000
 * identifiers to find 2,000 of them (109 ms instead of 14) and all people to update 1,000 (50 ms
 * instead of 8). Settings are part of this statement, so that they cost no round trip.
 */
export async function claimEnvelope(
  transaction: DatabaseOrTransaction,
  envelopeId: string,
  operationCount: number,
  traceparent: string | null = null,
): Promise<string | undefined> {
  const { rows } = await sql<{ envelopeNumber: string }>`
    insert into envelopes (envelope_id, operation_count, traceparent)
    select ${envelopeId}::text, ${operationCount}::int, ${traceparent}::text
    from (
      select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
             set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
    ) as planner
    on conflict (envelope_id) do nothing
    returning envelope_number as "envelopeNumber"`.execute(transaction);
  return rows[0]?.envelopeNumber;
}

/**
 * Of deliveries of one webhook, those whose envelope is traced: place in the trace by sequence. By the
 * primary key of the log, then `envelopes_by_number`.
 *
 * @param firstDay - none of them was logged before the day after it, `2026-11-20`.
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
