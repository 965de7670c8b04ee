/** Deliveries as their webhook's owner sees them: all with their attempts, or the matches of a filter. */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import type { AttemptRecord } from './lane-progress.ts';

/** The cause of a delivery: an event, or an operator. */
export type DeliveryOrigin = 'event' | 'resend' | 'test';

/** A delivery as its webhook's owner sees it (`ingestion-webhooks.md` §3). */
export interface DeliveryReport {
  readonly sequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAt: Date;
  readonly appendedAt: Date;
  readonly origin: DeliveryOrigin;
  /** The delivery that this one repeats, if it is a resend. */
  readonly resendOf: number | null;
  readonly state: 'pending' | 'retrying' | 'delivered' | 'abandoned';
  readonly attempts: number;
}

/** The deliveries of a webhook, newest first, before a sequence; by the primary key, backwards. */
export async function listDeliveries(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  limit: number,
  beforeSequence: number = Number.MAX_SAFE_INTEGER,
): Promise<DeliveryReport[]> {
  const { rows } = await sql<Omit<DeliveryReport, 'sequence'> & { sequence: string }>`
    select log.sequence, event_id as "eventId", event_type as "eventType", occurred_at as "occurredAt",
           appended_at as "appendedAt", origin, resend_of::float8 as "resendOf", coalesce(latest.outcome, 'pending') as state,
           coalesce(latest.attempt, 0) as attempts
      from delivery_log log
      left join lateral (
        select outcome, attempt from delivery_attempts a
         where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id and a.sequence = log.sequence
         order by attempt desc limit 1) latest on true
     where log.environment_id = ${lane.environmentId} and log.webhook_id = ${lane.webhookId}
       and log.sequence < ${beforeSequence}
     order by log.sequence desc limit ${limit}`.execute(database);
  return rows.map((row) => ({ ...row, sequence: Number(row.sequence) }));
}

/** A week of the default schedule has at most 350, but an operator may have one made at each call. */
export const ATTEMPTS_SHOWN_MAX = 400;
/** Of a delivery. Each has up to 32 KB of the endpoint's answer, and a page has up to a hundred deliveries. */
export const ANSWERS_SHOWN_MAX = 10;

/**
 * The latest attempts of some deliveries of a webhook, in order. Only the last of them have the endpoint's answer, head
 * and body. By the primary key, backwards.
 */
export async function listAttempts(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  sequences: readonly number[],
): Promise<AttemptRecord[]> {
  const { rows } = await sql<
    Omit<AttemptRecord, 'sequence' | 'startedAtMs'> & { sequence: string; startedAt: Date }
  >`
    select sequence, attempt, started_at as "startedAt", duration_ms as "durationMs", status, outcome, failure,
           failure_message as "failureMessage",
           case when place <= ${ANSWERS_SHOWN_MAX} then response_head end as "responseHead",
           case when place <= ${ANSWERS_SHOWN_MAX} then response_body end as "responseBody"
      from unnest(${sequences}::bigint[]) as asked (of_sequence)
     cross join lateral (
        select *, row_number() over (order by attempt desc) as place from delivery_attempts
         where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence = of_sequence
         order by attempt desc limit ${ATTEMPTS_SHOWN_MAX}) latest
     order by sequence, attempt`.execute(database);
  return rows.map(({ startedAt, ...row }) => ({
    ...row,
    sequence: Number(row.sequence),
    startedAtMs: startedAt.getTime(),
  }));
}

/** All that is given must hold. */
export interface DeliveryFilter {
  readonly state?: DeliveryReport['state'] | undefined;
  readonly eventType?: string | undefined;
  /** Of its log entry; inclusive. */
  readonly sinceMs?: number | undefined;
  /** Exclusive. */
  readonly untilMs?: number | undefined;
  /** Of the reporting event, or of the client's event behind it. */
  readonly eventId?: string | undefined;
  /** int8, in decimal digits: whom the event is about. */
  readonly personId?: string | undefined;
  /** Of the last answer. `none`: an attempt was made and no answer came. */
  readonly statusClass?: StatusClass | undefined;
}

export const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

/**
 * The filter as conditions: on the log's row `examined`, which apply before its attempts are read, and on the last
 * attempt, `latest`.
 */
export function conditionsOf({
  state,
  eventType,
  sinceMs,
  untilMs,
  eventId,
  personId,
  statusClass,
}: DeliveryFilter): { ofLog: RawBuilder<unknown>; ofLatest: RawBuilder<unknown> } {
  const and = (conditions: readonly (RawBuilder<unknown> | undefined)[]): RawBuilder<unknown> =>
    sql.join([sql`true`, ...conditions.filter((each) => each !== undefined)], sql` and `);
  const hundred = Number(statusClass?.[0]) * 100;
  return {
    ofLog: and([
      eventType === undefined ? undefined : sql`examined.event_type = ${eventType}`,
      sinceMs === undefined ? undefined : sql`examined.appended_at >= ${new Date(sinceMs)}`,
      untilMs === undefined ? undefined : sql`examined.appended_at < ${new Date(untilMs)}`,
      personId === undefined ? undefined : sql`examined.person_id = ${personId}::bigint`,
      eventId === undefined
        ? undefined
        : sql`(examined.event_id = ${eventId} or examined.cause_event_id = ${eventId})`,
    ]),
    ofLatest: and([
      state === undefined ? undefined : sql`coalesce(latest.outcome, 'pending') = ${state}`,
      statusClass === undefined
        ? undefined
        : statusClass === 'none'
          ? sql`latest.outcome is not null and latest.status is null`
          : sql`latest.status >= ${hundred} and latest.status < ${hundred + 100}`,
    ]),
  };
}

export interface MatchingDeliveries {
  /** Newest first. */
  readonly deliveries: readonly DeliveryReport[];
  /** Go on before this sequence; undefined if no older delivery can match. */
  readonly nextBefore: number | undefined;
}

interface Row extends Omit<DeliveryReport, 'sequence'> {
  /** Null in the one row of a page without a match. */
  readonly sequence: string | null;
  readonly examinedThrough: string | null;
}

/**
 * At most `limit` deliveries that match before a sequence, newest first, out of at most `scanLimit` examined: a page
 * can be short, or empty, while there is more.
 *
 * A state is not stored but follows from the attempts, so rows are examined one by one. The lane's cursor bounds the
 * rows that can have a state at all, and the scan limit bounds the cost of a rare state. The log is in order of time,
 * so the first row that is too old ends the scan. By the primary keys of log (backwards), lanes and attempts; of one
 * event by `delivery_log_by_event` and `delivery_log_by_cause`, so that it is found however much came after it.
 */
export async function listMatchingDeliveries(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  filter: DeliveryFilter,
  {
    beforeSequence,
    limit,
    scanLimit,
  }: { beforeSequence: number; limit: number; scanLimit: number },
): Promise<MatchingDeliveries> {
  const { state, sinceMs, eventId } = filter;
  // Up to the cursor everything has ended; no delivery beyond attempted_sequence was tried. As scalars, for only those
  // bound the range of the index; a join would read the whole backlog and drop it.
  const cursor = sql`(select cursor_sequence from lane)`;
  const attempted = sql`(select attempted_sequence from lane)`;
  const where = {
    any: sql`true`,
    pending: sql`sequence > ${cursor}`,
    retrying: sql`sequence > ${cursor} and sequence <= ${attempted}`,
    delivered: sql`sequence <= ${attempted}`,
    abandoned: sql`sequence <= ${attempted}`,
  }[state ?? 'any'];
  const { ofLog, ofLatest } = conditionsOf(filter);
  // Before the scan limit: later deliveries must not use it up.
  const isOfEvent =
    eventId === undefined ? sql`true` : sql`(event_id = ${eventId} or cause_event_id = ${eventId})`;
  const isOldest =
    sinceMs === undefined ? sql`false` : sql`min(appended_at) < ${new Date(sinceMs)}`;
  const { rows } = await sql<Row>`
    with lane as materialized (
      select cursor_sequence, attempted_sequence from lanes
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
    ), examined as materialized (
      select sequence, event_id, event_type, occurred_at, appended_at, origin, resend_of, person_id, cause_event_id
        from delivery_log
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
         and sequence < ${beforeSequence} and ${where} and ${isOfEvent}
       order by sequence desc limit ${scanLimit}
    ), matching as (
      select examined.*, coalesce(latest.outcome, 'pending') as state, coalesce(latest.attempt, 0) as attempts
        from examined
        left join lateral (
          select outcome, attempt, status from delivery_attempts a
           where a.environment_id = ${lane.environmentId} and a.webhook_id = ${lane.webhookId}
             and a.sequence = examined.sequence
           order by attempt desc limit 1) latest on true
       where ${ofLog} and ${ofLatest}
       order by examined.sequence desc limit ${limit}
    ), through as (
      select case when count(*) = ${scanLimit} and not (${isOldest}) then min(sequence) end as sequence from examined
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

/** One delivery; undefined if it does not exist. By the primary key. */
export async function findDelivery(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  sequence: number,
): Promise<DeliveryReport | undefined> {
  const [found] = await listDeliveries(database, lane, 1, sequence + 1);
  return found?.sequence === sequence ? found : undefined;
}
