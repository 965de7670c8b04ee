/**
 * One event's whole way, found by its id.
 *
 * The way is its commit batch with the time of receipt, its row, and its reporting events with their deliveries. Each
 * statement uses an index, for any size of the tables.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { ATTEMPTS_SHOWN_MAX, type DeliveryReport } from '../delivery/delivery-reads.ts';
import type { AttemptRecord } from '../delivery/lane-progress.ts';
import { PLACES_MS_MAX } from './events.ts';

/** Facts about the commit batch that an event came in. */
export interface TracedCommitBatch {
  readonly envelopeId: string;
  readonly operationCount: number;
  readonly processedAt: Date;
}

export interface TracedArrival {
  /** Null if it was taken before this was kept. */
  readonly receivedAt: Date | null;
  readonly source: string | null;
  readonly envelope: TracedCommitBatch | null;
}

export interface TracedEvent {
  readonly kind: string;
  readonly name: string | null;
  readonly personId: string | null;
  readonly anonymousId: string | null;
  readonly occurredAt: Date;
  readonly receivedAt: Date;
  readonly processedAt: Date | null;
}

export interface TracedDelivery extends DeliveryReport {
  readonly webhookId: number;
  readonly causeEventId: string | null;
  readonly envelope: TracedCommitBatch | null;
}

interface CommitBatchColumns {
  readonly envelopeId: string | null;
  readonly operationCount: number;
  readonly processedAt: Date;
}

const COMMIT_BATCH_COLUMNS = sql`
  envelopes.envelope_id as "envelopeId", envelopes.operation_count as "operationCount",
  envelopes.processed_at as "processedAt"`;

/**
 * How an event id was taken; undefined if it was not. By the primary key, then `envelopes_by_number`: apart, since on
 * Citus the second table is the coordinator's.
 */
export async function findEventArrival(
  database: DatabaseOrTransaction,
  environmentId: number,
  eventId: string,
): Promise<TracedArrival | undefined> {
  const { rows } = await sql<
    CommitBatchColumns & { receivedAt: Date | null; source: string | null }
  >`
    with arrival as materialized (
      select received_at, source, envelope_number from event_ids
       where environment_id = ${environmentId} and event_id = ${eventId}
    )
    select arrival.received_at as "receivedAt", arrival.source, ${COMMIT_BATCH_COLUMNS}
      from arrival left join envelopes using (envelope_number)`.execute(database);
  const [row] = rows;
  return row && { receivedAt: row.receivedAt, source: row.source, envelope: commitBatchOf(row) };
}

/**
 * The row of an event that came at a time; undefined for a metric, which has no row. The time selects one partition or
 * two, and within it `events_by_arrival` selects the workspace's events of the next tenth of a second (`events.ts`).
 */
export async function findEventAt(
  database: DatabaseOrTransaction,
  environmentId: number,
  eventId: string,
  receivedAt: Date,
): Promise<TracedEvent | undefined> {
  const { rows } = await sql<TracedEvent>`
    select kind, name, person_id as "personId", anonymous_id as "anonymousId", occurred_at as "occurredAt",
           received_at as "receivedAt", processed_at as "processedAt"
      from events
     where environment_id = ${environmentId} and received_at >= ${receivedAt} and received_at < ${receivedAt}::timestamptz + ${PLACES_MS_MAX}::int * interval '1 millisecond'
       and event_id = ${eventId}`.execute(database);
  return rows[0];
}

/**
 * Deliveries of a reporting event, or of the reporting events that a client's event caused: the latest `limit`.
 * Deliveries of deleted webhooks and of feeds are left out. By `delivery_log_by_event` and `delivery_log_by_cause`, then the primary
 * keys of webhooks and attempts.
 */
export async function listDeliveriesOfEvent(
  database: DatabaseOrTransaction,
  environmentId: number,
  eventId: string,
  limit: number,
): Promise<TracedDelivery[]> {
  const { rows } = await sql<
    Omit<TracedDelivery, 'sequence' | 'envelope'> & CommitBatchColumns & { sequence: string }
  >`
    with reported as materialized (
      select ${eventId}::text collate "C" as event_id
      union
      select event_id from delivery_log
       where environment_id = ${environmentId} and cause_event_id = ${eventId}
    ), found as materialized (
      select log.* from reported join delivery_log log using (event_id)
        join webhooks using (environment_id, webhook_id)
       where log.environment_id = ${environmentId} and webhooks.environment_id = ${environmentId}
         and webhooks.deleted_at is null and webhooks.feed_name is null
       order by log.appended_at desc, log.webhook_id, log.sequence desc
       limit ${limit}
    )
    select found.webhook_id as "webhookId", found.sequence, found.event_id as "eventId", found.event_type as "eventType",
           found.occurred_at as "occurredAt", found.appended_at as "appendedAt", found.origin,
           found.resend_of::float8 as "resendOf", found.cause_event_id as "causeEventId",
           coalesce(latest.outcome, 'pending') as state, coalesce(latest.attempt, 0) as attempts, ${COMMIT_BATCH_COLUMNS}
      from found
      -- Once a row, by index: the planner guesses that "found" is as long as its limit, and would read all envelopes.
      left join lateral (
        select envelope_id, operation_count, processed_at from envelopes e
         where e.envelope_number = found.envelope_number limit 1) envelopes on true
      left join lateral (
        select outcome, attempt from delivery_attempts a
         where a.environment_id = ${environmentId} and a.webhook_id = found.webhook_id and a.sequence = found.sequence
         order by attempt desc limit 1) latest on true
     order by found.appended_at, found.webhook_id, found.sequence`.execute(database);
  return rows.map(({ envelopeId, operationCount, processedAt, ...row }) => ({
    ...row,
    sequence: Number(row.sequence),
    envelope: commitBatchOf({ envelopeId, operationCount, processedAt }),
  }));
}

/** An attempt without the endpoint's answer. */
export type TracedAttempt = Omit<AttemptRecord, 'responseHead' | 'responseBody'> & {
  readonly webhookId: number;
};

/** The latest attempts of some deliveries, in order; by the primary key, backwards. */
export async function listAttemptsOf(
  database: DatabaseOrTransaction,
  environmentId: number,
  deliveries: readonly { readonly webhookId: number; readonly sequence: number }[],
): Promise<TracedAttempt[]> {
  if (deliveries.length === 0) return [];
  const { rows } = await sql<
    Omit<TracedAttempt, 'sequence' | 'startedAtMs'> & { sequence: string; startedAt: Date }
  >`
    select webhook_id as "webhookId", sequence, attempt, started_at as "startedAt", duration_ms as "durationMs", status,
           outcome, failure, failure_message as "failureMessage"
      from unnest(
        ${deliveries.map((delivery) => delivery.webhookId)}::int[],
        ${deliveries.map((delivery) => delivery.sequence)}::bigint[]
      ) as d (of_webhook, of_sequence)
     cross join lateral (
        select * from delivery_attempts
         where environment_id = ${environmentId} and webhook_id = of_webhook and sequence = of_sequence
         order by attempt desc limit ${ATTEMPTS_SHOWN_MAX}) latest
     order by webhook_id, sequence, attempt`.execute(database);
  return rows.map(({ startedAt, ...row }) => ({
    ...row,
    sequence: Number(row.sequence),
    startedAtMs: startedAt.getTime(),
  }));
}

const commitBatchOf = ({
  envelopeId,
  operationCount,
  processedAt,
}: CommitBatchColumns): TracedCommitBatch | null =>
  envelopeId === null ? null : { envelopeId, operationCount, processedAt };
