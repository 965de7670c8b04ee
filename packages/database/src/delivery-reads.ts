/** Deliveries of one state, for whoever asks what is held back or what was given up. All of them: `deliveries.ts`. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import type { DeliveryReport } from './deliveries.ts';
import type { LaneKey } from './lanes.ts';

export interface DeliveriesOfState {
  /** Newest first. */
  readonly deliveries: readonly DeliveryReport[];
  /** Go on before this sequence; undefined where nothing older can match. */
  readonly nextBefore: number | undefined;
}

interface Row extends Omit<DeliveryReport, 'sequence'> {
  /** Null in the one row of a page without a match. */
  readonly sequence: string | null;
  readonly examinedThrough: string | null;
}

/**
 * At most `limit` deliveries of a state before a sequence, newest first, out of at most `scanLimit`
 * examined: a page can be short, or empty, while there is more.
 *
 * A state is not stored but follows from the attempts, so rows are examined one by one; the lane's
 * cursor says where a state can be at all, and the scan limit bounds what one that is rare can cost.
 * By the primary keys of log (backwards), lanes and attempts.
 */
export async function listDeliveriesOfState(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  state: DeliveryReport['state'],
  {
    beforeSequence,
    limit,
    scanLimit,
  }: { beforeSequence: number; limit: number; scanLimit: number },
): Promise<DeliveriesOfState> {
  // Up to the cursor everything has ended; beyond attempted_sequence nothing was tried. As scalars,
  // for only those bound the range of the index; a join would read the whole backlog and drop it.
  const cursor = sql`(select cursor_sequence from lane)`;
  const attempted = sql`(select attempted_sequence from lane)`;
  const where = {
    pending: sql`sequence > ${cursor}`,
    retrying: sql`sequence > ${cursor} and sequence <= ${attempted}`,
    delivered: sql`sequence <= ${attempted}`,
    abandoned: sql`sequence <= ${attempted}`,
  }[state];
  const { rows } = await sql<Row>`
    with lane as materialized (
      select cursor_sequence, attempted_sequence from lanes
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
    ), examined as materialized (
      select sequence, event_id, event_type, occurred_at, appended_at, origin, resend_of
        from delivery_log
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
         and sequence < ${beforeSequence} and ${where}
       order by sequence desc limit ${scanLimit}
    ), matching as (
      select examined.*, coalesce(latest.outcome, 'pending') as state, coalesce(latest.attempt, 0) as attempts
        from examined
        left join lateral (
          select outcome, attempt from delivery_attempts a
           where a.environment_id = ${lane.environmentId} and a.webhook_id = ${lane.webhookId}
             and a.sequence = examined.sequence
           order by attempt desc limit 1) latest on true
       where coalesce(latest.outcome, 'pending') = ${state}
       order by examined.sequence desc limit ${limit}
    ), through as (
      select case when count(*) = ${scanLimit} then min(sequence) end as sequence from examined
    )
    select through.sequence as "examinedThrough", m.sequence, m.event_id as "eventId", m.event_type as "eventType",
           m.occurred_at as "occurredAt", m.appended_at as "appendedAt", m.origin, m.resend_of::float8 as "resendOf", m.state, m.attempts
      from through left join matching m on true
     order by m.sequence desc`.execute(database);

  const deliveries = rows.flatMap(({ examinedThrough: _, ...row }) =>
    row.sequence === null ? [] : [{ ...row, sequence: Number(row.sequence) }],
  );
  const last = deliveries.at(-1);
  if (last && deliveries.length === limit) return { deliveries, nextBefore: last.sequence };
  const examinedThrough = rows[0]?.examinedThrough ?? undefined;
  return {
    deliveries,
    nextBefore: examinedThrough === undefined ? undefined : Number(examinedThrough),
  };
}
