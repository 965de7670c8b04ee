/**
 * Counts of each minute (`migrations/0064_minute_statistics.ts`).
 *
 * Workers write them every ten seconds, in two statements at most; `GET /v1/statistics` reads them. Kept for 30 days.
 */
import { LATENCY_CLASS_COUNT } from '@sluice/domain/delivery/latency-counts';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

/** The row of all names, beside the rows of each. */
export const ALL_NAMES = '';
/** The row of all webhooks. */
export const ALL_WEBHOOKS = 0;

export interface EventMinute {
  readonly environmentId: number;
  /** Name of a tracked event, else the type of the operation; for refused calls the kind of call. */
  readonly name: string;
  readonly minuteMs: number;
  readonly accepted: number;
  readonly refused: number;
}

export interface DeliveryMinute {
  readonly environmentId: number;
  readonly webhookId: number;
  readonly minuteMs: number;
  /** Attempts. */
  readonly delivered: number;
  readonly failed: number;
  /** By the classes of `latency-counts.ts`. */
  readonly latencyCounts: readonly number[];
}

/**
 * Writes the sums of a process over its earlier sums of the same minutes. By the primary keys, in their order: no other
 * process writes these rows.
 */
export async function writeMinutes(
  database: Database,
  processId: string,
  events: readonly EventMinute[],
  deliveries: readonly DeliveryMinute[],
): Promise<void> {
  if (events.length > 0)
    await sql`
      insert into event_minutes (environment_id, name, minute, process_id, accepted, refused)
      select environment_id, name, to_timestamp(minute_s), ${processId}, accepted, refused
        from unnest(${events.map((row) => row.environmentId)}::int[], ${events.map((row) => row.name)}::text[],
                    ${events.map((row) => row.minuteMs / 1000)}::float8[], ${events.map((row) => row.accepted)}::bigint[],
                    ${events.map((row) => row.refused)}::bigint[])
          as given (environment_id, name, minute_s, accepted, refused)
      on conflict (environment_id, name, minute, process_id)
      do update set accepted = excluded.accepted, refused = excluded.refused`.execute(database);
  if (deliveries.length > 0)
    await sql`
      insert into delivery_minutes (environment_id, webhook_id, minute, process_id, delivered, failed, latency_counts)
      select environment_id, webhook_id, to_timestamp(minute_s), ${processId}, delivered, failed, latency_counts::bigint[]
        from unnest(${deliveries.map((row) => row.environmentId)}::int[], ${deliveries.map((row) => row.webhookId)}::int[],
                    ${deliveries.map((row) => row.minuteMs / 1000)}::float8[], ${deliveries.map((row) => row.delivered)}::bigint[],
                    ${deliveries.map((row) => row.failed)}::bigint[],
                    ${deliveries.map((row) => `{${row.latencyCounts.join(',')}}`)}::text[])
          as given (environment_id, webhook_id, minute_s, delivered, failed, latency_counts)
      on conflict (environment_id, webhook_id, minute, process_id)
      do update set delivered = excluded.delivered, failed = excluded.failed, latency_counts = excluded.latency_counts`.execute(
      database,
    );
}

/** Steps begin at multiples of their length from the epoch, which is midnight UTC for days. */
export interface StatisticsRange {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  readonly stepSeconds: number;
}

export interface EventStep {
  readonly at: Date;
  readonly name: string;
  readonly accepted: number;
  readonly refused: number;
}

/** At most this many names or webhooks a chart, the largest ones. */
const SUBJECT_COUNT_MAX = 20;

const binOf = ({ stepSeconds }: StatisticsRange) =>
  sql`date_bin(make_interval(secs => ${stepSeconds}), minute, 'epoch'::timestamptz)`;

/**
 * Steps with anything in them, in the order of time. By the primary key: without names a row a minute and process, with them
 * all rows of the range.
 *
 * @param byName - of the most frequent names.
 */
export async function listEventSteps(
  database: DatabaseOrTransaction,
  environmentId: number,
  range: StatisticsRange,
  metric: 'accepted' | 'refused',
  byName: boolean,
): Promise<EventStep[]> {
  const within = sql`environment_id = ${environmentId} and minute >= ${new Date(range.fromMs)} and minute < ${new Date(range.toMs)}`;
  const count = sql.ref(metric);
  const names = byName
    ? sql`name in (select name from event_minutes where ${within} and name <> ${ALL_NAMES}
                    group by name having sum(${count}) > 0 order by sum(${count}) desc, name limit ${SUBJECT_COUNT_MAX})`
    : sql`name = ${ALL_NAMES}`;
  const { rows } = await sql<EventStep>`
    select ${binOf(range)} as at, name, sum(accepted)::float8 as accepted, sum(refused)::float8 as refused
      from event_minutes where ${within} and ${names}
     group by 1, 2 order by 1, 2`.execute(database);
  return rows;
}

export interface DeliveryStep {
  readonly at: Date;
  readonly webhookId: number;
  readonly delivered: number;
  readonly failed: number;
  readonly latencyCounts: readonly number[];
}

/** As {@link listEventSteps}, of one webhook, of each, or of all together. */
export async function listDeliverySteps(
  database: DatabaseOrTransaction,
  environmentId: number,
  range: StatisticsRange,
  webhookIds: readonly number[],
): Promise<DeliveryStep[]> {
  const sums = sql.join(
    Array.from(
      { length: LATENCY_CLASS_COUNT },
      (_, place) => sql`coalesce(sum(latency_counts[${sql.lit(place + 1)}]), 0)::float8`,
    ),
  );
  const { rows } = await sql<DeliveryStep>`
    select ${binOf(range)} as at, webhook_id as "webhookId", sum(delivered)::float8 as delivered,
           sum(failed)::float8 as failed, array[${sums}] as "latencyCounts"
      from delivery_minutes
     where environment_id = ${environmentId} and webhook_id = any(${webhookIds}::int[])
       and minute >= ${new Date(range.fromMs)} and minute < ${new Date(range.toMs)}
     group by 1, 2 order by 1, 2`.execute(database);
  return rows;
}

/** The attempts of each webhook since a time; one without attempts is left out. By the primary key. */
export async function sumAttempts(
  database: DatabaseOrTransaction,
  environmentId: number,
  webhookIds: readonly number[],
  sinceMs: number,
): Promise<{ webhookId: number; delivered: number; failed: number }[]> {
  const { rows } = await sql<{ webhookId: number; delivered: number; failed: number }>`
    select webhook_id as "webhookId", sum(delivered)::float8 as delivered, sum(failed)::float8 as failed
      from delivery_minutes
     where environment_id = ${environmentId} and webhook_id = any(${webhookIds}::int[])
       and minute >= ${new Date(sinceMs)}
     group by 1`.execute(database);
  return rows;
}

/** The webhooks with the most attempts in the range. By the primary key. */
export async function listBusyWebhooks(
  database: DatabaseOrTransaction,
  environmentId: number,
  range: StatisticsRange,
): Promise<number[]> {
  const { rows } = await sql<{ webhookId: number }>`
    select webhook_id as "webhookId" from delivery_minutes
     where environment_id = ${environmentId} and webhook_id <> ${ALL_WEBHOOKS}
       and minute >= ${new Date(range.fromMs)} and minute < ${new Date(range.toMs)}
     group by 1 order by sum(delivered + failed) desc, 1 limit ${SUBJECT_COUNT_MAX}`.execute(
    database,
  );
  return rows.map((row) => row.webhookId);
}

/**
 * Of all tenants, so without one; by the indexes of age.
 *
 * @returns how many rows of each table were deleted at most.
 */
export async function deleteOldMinutes(
  database: DatabaseOrTransaction,
  before: Date,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with old_events as (
      delete from event_minutes where ctid = any(array(
        select ctid from event_minutes where minute < ${before} limit ${limit})) returning 1),
    old_deliveries as (
      delete from delivery_minutes where ctid = any(array(
        select ctid from delivery_minutes where minute < ${before} limit ${limit})) returning 1)
    select greatest((select count(*) from old_events), (select count(*) from old_deliveries))::int as count`.execute(
    database,
  );
  return rows[0]?.count ?? 0;
}
