/** Filtered deliveries of all webhooks of a workspace, newest first. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import {
  conditionsOf,
  type DeliveryFilter,
  type DeliveryReport,
} from '../delivery/delivery-reads.ts';

export interface RecentDelivery extends DeliveryReport {
  readonly webhookId: number;
}

/** The position up to which the log of a webhook was examined. */
export interface LogPosition {
  readonly webhookId: number;
  readonly beforeSequence: number;
}

export interface RecentDeliveries {
  readonly deliveries: readonly RecentDelivery[];
  /** Go on from here; undefined if no older delivery can match. */
  readonly next: readonly LogPosition[] | undefined;
}

/** Longer than a transaction that logs deliveries lasts. */
const OUT_OF_ORDER_MS_MAX = 60_000;

interface Row extends Omit<RecentDelivery, 'sequence'> {
  readonly sequence: string | null;
  readonly positions: readonly LogPosition[] | null;
}

/**
 * At most `limit` deliveries before positions in the logs of webhooks, out of at most `scanLimit` examined of each: a
 * page can be short, or empty, while there is more. The logs are of one length of time: a row that is older than the
 * newest of the scans' ends waits for the next page, so that pages follow each other in time.
 *
 * A log is not quite in order of time: a row has the time at which its transaction began. So each row counts as no
 * newer than the rows before it on the page; otherwise a page could pass a row that it did not show.
 *
 * By the primary key of the log (backwards) for each webhook, and the primary key of attempts for each row.
 */
export async function listRecentDeliveries(
  database: DatabaseOrTransaction,
  environmentId: number,
  from: readonly LogPosition[],
  filter: DeliveryFilter,
  { limit, scanLimit }: { readonly limit: number; readonly scanLimit: number },
): Promise<RecentDeliveries> {
  const { ofLog, ofLatest } = conditionsOf(filter);
  const { eventId } = filter;
  const isOfEvent =
    eventId === undefined
      ? sql`true`
      : sql`(log.event_id = ${eventId} or log.cause_event_id = ${eventId})`;
  // A row that is too old ends the scan of its log.
  const tooOld =
    filter.sinceMs === undefined
      ? sql`false`
      : sql`appended_at < ${new Date(filter.sinceMs - OUT_OF_ORDER_MS_MAX)}`;
  const { rows } = await sql<Row>`
    with examined as materialized (
      select log.*, min(appended_at) over (partition by log.webhook_id order by log.sequence desc) as listed_at
        from unnest(${from.map((each) => each.webhookId)}::int[],
                               ${from.map((each) => each.beforeSequence)}::bigint[]) as asked (webhook_id, before_sequence)
       cross join lateral (
        select webhook_id, sequence, event_id, event_type, occurred_at, appended_at, origin, resend_of, person_id, cause_event_id
          from delivery_log log
         where log.environment_id = ${environmentId} and log.webhook_id = asked.webhook_id
           and log.sequence < asked.before_sequence and ${isOfEvent}
         order by log.sequence desc limit ${scanLimit}) log
    ), ends as (
      select webhook_id, min(listed_at) as oldest, count(*) = ${scanLimit} and not bool_or(${tooOld}) as has_more
        from examined group by webhook_id
    ), horizon as (
      select coalesce((select max(oldest) from ends where has_more), '-infinity') as at
    ), matching as materialized (
      select examined.*, coalesce(latest.outcome, 'pending') as state, coalesce(latest.attempt, 0) as attempts
        from examined
        left join lateral (
          select outcome, attempt, status from delivery_attempts a
           where a.environment_id = ${environmentId} and a.webhook_id = examined.webhook_id
             and a.sequence = examined.sequence
           order by attempt desc limit 1) latest on true
       where examined.listed_at >= (select at from horizon) and ${ofLog} and ${ofLatest}
       order by examined.listed_at desc, examined.webhook_id, examined.sequence desc limit ${limit}
    ), passed as (
      -- What was shown, or examined in vain: newer than the last of a full page, or within the horizon of another.
      select webhook_id, min(sequence) as sequence from examined
       where case when (select count(*) from matching) = ${limit}
                  then listed_at > (select min(listed_at) from matching)
                       or (webhook_id, sequence) in (select webhook_id, sequence from matching)
                  else listed_at >= (select at from horizon) end
       group by webhook_id
    ), positions as (
      select json_agg(json_build_object('webhookId', asked.webhook_id,
                                        'beforeSequence', coalesce(passed.sequence, asked.before_sequence))
                      order by asked.webhook_id) as list
        from unnest(${from.map((each) => each.webhookId)}::int[],
                    ${from.map((each) => each.beforeSequence)}::bigint[]) as asked (webhook_id, before_sequence)
        left join passed using (webhook_id)
       where (select count(*) from matching) = ${limit} or exists (select from ends where has_more)
    )
    select positions.list as positions, m.webhook_id as "webhookId", m.sequence, m.event_id as "eventId",
           m.event_type as "eventType", m.occurred_at as "occurredAt", m.appended_at as "appendedAt", m.origin,
           m.resend_of::float8 as "resendOf", m.state, m.attempts
      from positions left join matching m on true
     order by m.listed_at desc, m.webhook_id, m.sequence desc`.execute(database);
  return {
    deliveries: rows.flatMap(({ positions: _, ...row }) =>
      row.sequence === null ? [] : [{ ...row, sequence: Number(row.sequence) }],
    ),
    next: rows[0]?.positions ?? undefined,
  };
}
