/**
 * The delivery log: one row an event to a webhook.
 *
 * Each lane's sequence has no gap: numbers are taken from the lane's row, whose lock is kept until
 * the commit batch's transaction ends, so they become visible in order and a reader that has seen n has
 * seen all before it.
 *
 * Walk: before `worker/src/events/process-commit-batch.ts` calls `appendDeliveries` (step 9); after
 * `logged-deliveries.ts` reads the log (step 11). Attempts are written in `lane-progress.ts`,
 * together with the cursor (step 14).
 */
import { matchesFilters, type AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import { deliveryBody } from '@sluice/domain/delivery/webhook';
import { sql } from 'kysely';
import {
  bigintColumn,
  booleanColumn,
  integerColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { takeFirstEngagements } from './first-engagements.ts';
import type { LaneKey } from './lanes.ts';

/** A lane whose log has grown. */
export interface LoggedLane extends LaneKey {
  /** Of the last delivery now. */
  readonly lastSequence: number;
}

/**
 * Logs a delivery of each event to each enabled webhook that chose its type. One statement, whatever the number; one
 * before it for the filters of webhooks that have any; and one where there are opens or clicks, of which webhooks
 * without `full_resolution` get only the first. Call it last in the transaction: it locks the lanes' rows until the
 * commit, in order of their key, so that two commit batches never deadlock.
 *
 * Finds webhooks and lanes by the environment's part of their primary keys.
 *
 * @param events - in the order in which the webhooks are to be told.
 * @returns lanes to wake after commit, without those that wait for a retry probe anyway.
 */
export async function appendDeliveries(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
): Promise<LoggedLane[]> {
  if (events.length === 0) return [];
  const repeats = await takeFirstEngagements(transaction, events);
  const unwanted = await listUnwanted(transaction, events);
  const { rows } = await sql<LoggedLane>`${PREPARED}
    with reported as (
      select * from unnest(
        ${integerColumn(events, (event) => event.environmentId)}::int[],
        ${textColumn(events, (event) => event.eventId)}::text[],
        ${textColumn(events, (event) => event.eventType)}::text[],
        ${timestampColumn(events, (event) => event.occurredAtMs)}::timestamptz[],
        ${textColumn(events, (event) => deliveryBody(event, false))}::text[],
        ${textColumn(events, (event) => (event.content === undefined ? null : deliveryBody(event, true)))}::text[],
        ${booleanColumn([...events.keys()], (place) => repeats.has(place))}::boolean[],
        ${textColumn(events, (event) => event.causeEventId ?? null)}::text[],
        ${bigintColumn(events, (event) => event.envelopeNumber ?? null)}::bigint[],
        ${bigintColumn(events, (event) => event.personId ?? null)}::bigint[]
      ) with ordinality as r (environment_id, event_id, event_type, occurred_at, body, body_with_content, is_repeat, cause_event_id, envelope_number, person_id, place)
    ), unwanted as (
      select * from unnest(
        ${integerColumn(unwanted, (pair) => pair.environmentId)}::int[],
        ${integerColumn(unwanted, (pair) => pair.webhookId)}::int[],
        ${bigintColumn(unwanted, (pair) => pair.place)}::bigint[]
      ) as u (environment_id, webhook_id, place)
    ), matched as (
      select webhooks.environment_id, webhooks.webhook_id, r.event_id, r.event_type, r.occurred_at, r.cause_event_id, r.envelope_number, r.person_id,
             case when webhooks.with_content then coalesce(r.body_with_content, r.body) else r.body end as body,
             row_number() over (partition by webhooks.environment_id, webhooks.webhook_id order by r.place) as step
        from reported r
        join webhooks on webhooks.environment_id = r.environment_id
                     and not webhooks.disabled and r.event_type = any (webhooks.events)
                     and (webhooks.full_resolution or not r.is_repeat)
                     and not exists (
                       select from unwanted u
                        where u.environment_id = r.environment_id and u.webhook_id = webhooks.webhook_id and u.place = r.place)
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
      returning lanes.environment_id, lanes.webhook_id, last_sequence, last_sequence - locked.deliveries as end_before, state
    ), logged as (
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body, cause_event_id, envelope_number, person_id)
      select environment_id, webhook_id, end_before + step, event_id, event_type, occurred_at, body, cause_event_id, envelope_number, person_id
        from matched join advanced using (environment_id, webhook_id)
    )
    select environment_id as "environmentId", webhook_id as "webhookId", last_sequence::float8 as "lastSequence"
      from advanced where state = 'healthy'`.execute(transaction);
  return rows;
}

/**
 * Which events, by their place from 1, are not for which webhooks: because of a filter, or because the event is about
 * that webhook. By `webhooks_filtered`, which has only webhooks with filters.
 */
async function listUnwanted(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
): Promise<(LaneKey & { readonly place: number })[]> {
  const environmentIds = [...new Set(events.map((event) => event.environmentId))];
  const { rows } = await sql<LaneKey & { filters: AttributeFilter[] }>`${PREPARED}
    select environment_id as "environmentId", webhook_id as "webhookId", attribute_filters as filters
      from webhooks
     where environment_id = any (${environmentIds}::int[]) and attribute_filters is not null and not disabled`.execute(
    transaction,
  );
  const filteredOut = rows.flatMap(({ environmentId, webhookId, filters }) =>
    events.flatMap((event, index) =>
      event.environmentId === environmentId && !matchesFilters(event, filters)
        ? [{ environmentId, webhookId, place: index + 1 }]
        : [],
    ),
  );
  const aboutItself = events.flatMap(({ environmentId, exceptWebhookId }, index) =>
    exceptWebhookId === undefined
      ? []
      : [{ environmentId, webhookId: exceptWebhookId, place: index + 1 }],
  );
  return [...filteredOut, ...aboutItself];
}
