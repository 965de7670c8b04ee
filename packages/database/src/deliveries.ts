/**
 * The delivery log and its attempts: one row an event to a webhook, one row an attempt to send it.
 *
 * Each lane's sequence has no gap: numbers are taken from the lane's row, whose lock is kept until
 * the envelope's transaction ends, so they become visible in order and a reader that has seen n has
 * seen all before it.
 *
 * Walk: before `worker/src/process-envelope.ts` calls `appendDeliveries` (step 9); after
 * `worker/src/deliver-webhook.ts` reads the log (step 11). Attempts are written in `lanes.ts`,
 * together with the cursor (step 14).
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';
import { addFailure, NEVER_ATTEMPTED } from '@sluice/domain/delivery-schedule';
import type { LaneDelivery } from '@sluice/domain/lane';
import type { ReportingEvent } from '@sluice/domain/reporting-event';
import { deliveryBody } from '@sluice/domain/webhook';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import { takeFirstEngagements } from './first-engagements.ts';
import type { AttemptRecord, LaneKey } from './lanes.ts';

/**
 * Logs a delivery of each event to each enabled webhook that chose its type: one statement,
 * whatever the number, and one before it where there are opens or clicks, of which webhooks without
 * `full_resolution` get the first only. Call it last in the transaction: from here the lanes' rows are locked. They
 * are locked in order of their key, so that two envelopes never wait for each other.
 *
 * Finds webhooks and lanes by the environment's part of their primary keys.
 *
 * @param events - in the order in which the webhooks are to be told.
 * @param envelopeNumber - of the envelope that they were found in.
 * @returns lanes to wake after commit. Not those that wait for a probe anyway.
 */
export async function appendDeliveries(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
  envelopeNumber: string | null = null,
): Promise<LaneKey[]> {
  if (events.length === 0) return [];
  const repeats = await takeFirstEngagements(transaction, events);
  const { rows } = await sql<LaneKey>`
    with reported as (
      select * from unnest(
        ${events.map((event) => event.environmentId)}::int[],
        ${events.map((event) => event.eventId)}::text[],
        ${events.map((event) => event.eventType)}::text[],
        ${events.map((event) => new Date(event.occurredAtMs))}::timestamptz[],
        ${events.map((event) => deliveryBody(event, false))}::text[],
        ${events.map((event) => (event.content === undefined ? null : deliveryBody(event, true)))}::text[],
        ${events.map((_, place) => repeats.has(place))}::boolean[],
        ${events.map((event) => event.causeEventId ?? null)}::text[]
      ) with ordinality as r (environment_id, event_id, event_type, occurred_at, body, body_with_content, is_repeat, cause_event_id, place)
    ), matched as (
      select webhooks.environment_id, webhooks.webhook_id, r.event_id, r.event_type, r.occurred_at, r.cause_event_id,
             case when webhooks.with_content then coalesce(r.body_with_content, r.body) else r.body end as body,
             row_number() over (partition by webhooks.environment_id, webhooks.webhook_id order by r.place) as step
        from reported r
        join webhooks on webhooks.environment_id = r.environment_id
                     and not webhooks.disabled and r.event_type = any (webhooks.events)
                     and (webhooks.full_resolution or not r.is_repeat)
    ), counted as (
      select environment_id, webhook_id, count(*) as deliveries from matched group by environment_id, webhook_id
    ), locked as (
      select lanes.environment_id, lanes.webhook_id, counted.deliveries
        from lanes join counted using (environment_id, webhook_id)
       order by environment_id, webhook_id
         for no key update of lanes
    ), advanced as (
      update lanes set last_sequence = last_sequence + locked.deliveries
        from locked
       where lanes.environment_id = locked.environment_id and lanes.webhook_id = locked.webhook_id
      returning lanes.environment_id, lanes.webhook_id, last_sequence - locked.deliveries as end_before, state
    ), logged as (
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body, cause_event_id, envelope_number)
      select environment_id, webhook_id, end_before + step, event_id, event_type, occurred_at, body, cause_event_id,
             ${envelopeNumber}::bigint
        from matched join advanced using (environment_id, webhook_id)
    )
    select environment_id as "environmentId", webhook_id as "webhookId"
      from advanced where state = 'healthy'`.execute(transaction);
  return rows;
}

/** A delivery to be sent. */
export interface LoggedDelivery extends LaneDelivery {
  readonly eventType: string;
  readonly body: string;
}

/**
 * The deliveries after `after`, in order, at most `limit`; with what earlier attempts came to for
 * those up to `attemptedThrough`. By the primary keys of log and attempts.
 */
export async function listDeliveriesAfter(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  after: number,
  attemptedThrough: number,
  limit: number,
): Promise<LoggedDelivery[]> {
  const { rows } = await sql<{
    sequence: string;
    eventType: string;
    body: string;
    isTriedOnce: boolean;
  }>`
    select sequence, event_type as "eventType", body, origin <> 'event' as "isTriedOnce" from delivery_log
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence > ${after}
     order by sequence limit ${limit}`.execute(database);
  const deliveries = rows.map((row) => ({
    sequence: Number(row.sequence),
    eventType: row.eventType,
    body: row.body,
    isTriedOnce: row.isTriedOnce,
    retry: NEVER_ATTEMPTED,
    isFinished: false,
  }));
  const first = deliveries[0];
  if (!first || first.sequence > attemptedThrough) return deliveries;

  const through = Math.min(attemptedThrough, deliveries.at(-1)?.sequence ?? 0);
  const { rows: attempts } = await sql<{
    sequence: string;
    startedAt: Date;
    status: number | null;
    outcome: AttemptRecord['outcome'];
    failure: FailureClass | null;
  }>`
    select sequence, started_at as "startedAt", status, outcome, failure from delivery_attempts
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
       and sequence between ${first.sequence} and ${through}
     order by sequence, attempt`.execute(database);
  for (const { sequence, startedAt, status, outcome, failure } of attempts) {
    const delivery = deliveries[Number(sequence) - first.sequence];
    if (!delivery) continue;
    delivery.isFinished = outcome !== 'retrying';
    if (failure === null) continue;
    delivery.retry = addFailure(delivery.retry, {
      startedAtMs: startedAt.getTime(),
      status,
      failure,
    });
  }
  return deliveries;
}

/** What made a delivery: something that happened, or an operator. */
export type DeliveryOrigin = 'event' | 'resend' | 'test';

/** A delivery as its webhook's owner sees it (`ingestion-webhooks.md` §3). */
export interface DeliveryReport {
  readonly sequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAt: Date;
  readonly appendedAt: Date;
  readonly origin: DeliveryOrigin;
  /** The delivery that this one repeats, where it is a resend. */
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

/** All attempts of some deliveries of a webhook, in order; by the primary key. */
export async function listAttempts(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  sequences: readonly number[],
): Promise<AttemptRecord[]> {
  const { rows } = await sql<
    Omit<AttemptRecord, 'sequence' | 'startedAtMs'> & { sequence: string; startedAt: Date }
  >`
    select sequence, attempt, started_at as "startedAt", duration_ms as "durationMs", status, outcome, failure,
           failure_message as "failureMessage", response_head as "responseHead", response_body as "responseBody"
      from delivery_attempts
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
       and sequence = any (${sequences}::bigint[])
     order by sequence, attempt`.execute(database);
  return rows.map(({ startedAt, ...row }) => ({
    ...row,
    sequence: Number(row.sequence),
    startedAtMs: startedAt.getTime(),
  }));
}
