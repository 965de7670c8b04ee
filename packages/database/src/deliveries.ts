/**
 * The delivery log and its attempts: one row an event to a webhook, one row an attempt to send it.
 *
 * Each lane's sequence has no gap: numbers are taken from the lane's row, whose lock is kept until
 * the envelope's transaction ends, so they become visible in order and a reader that has seen n has
 * seen all before it.
 *
 * Walk: before `worker/src/process-envelope.ts` calls `appendDeliveries` (step 9); after
 * `worker/src/deliver-webhook.ts` reads the log (step 11). Attempts are written in `lane-progress.ts`,
 * together with the cursor (step 14).
 */
import { matchesFilters, type AttributeFilter } from '@sluice/domain/attribute-filter';
import type { FailureClass } from '@sluice/domain/delivery-failure';
import { addFailure, NEVER_ATTEMPTED, type RetryState } from '@sluice/domain/delivery-schedule';
import type { LaneDelivery } from '@sluice/domain/lane';
import type { ReportingEvent } from '@sluice/domain/reporting-event';
import { deliveryBody } from '@sluice/domain/webhook';
import { sql } from 'kysely';
import {
  bigintColumn,
  booleanColumn,
  integerColumn,
  textColumn,
  timestampColumn,
} from './columns.ts';
import { PREPARED, type DatabaseOrTransaction } from './connection.ts';
import { takeFirstEngagements } from './first-engagements.ts';
import type { AttemptRecord } from './lane-progress.ts';
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
 * commit, in order of their key, so that two envelopes never deadlock.
 *
 * Finds webhooks and lanes by the environment's part of their primary keys.
 *
 * @param events - in the order in which the webhooks are to be told.
 * @returns lanes to wake after commit, without those that wait for a probe anyway.
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
        ${bigintColumn(events, (event) => event.envelopeNumber ?? null)}::bigint[]
      ) with ordinality as r (environment_id, event_id, event_type, occurred_at, body, body_with_content, is_repeat, cause_event_id, envelope_number, place)
    ), unwanted as (
      select * from unnest(
        ${integerColumn(unwanted, (pair) => pair.environmentId)}::int[],
        ${integerColumn(unwanted, (pair) => pair.webhookId)}::int[],
        ${bigintColumn(unwanted, (pair) => pair.place)}::bigint[]
      ) as u (environment_id, webhook_id, place)
    ), matched as (
      select webhooks.environment_id, webhooks.webhook_id, r.event_id, r.event_type, r.occurred_at, r.cause_event_id, r.envelope_number,
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
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body, cause_event_id, envelope_number)
      select environment_id, webhook_id, end_before + step, event_id, event_type, occurred_at, body, cause_event_id, envelope_number
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

/** A delivery to be sent. */
export interface LoggedDelivery extends LaneDelivery {
  readonly eventId: string;
  readonly eventType: string;
  readonly body: string;
  /** No later delivery of the lane is from a day before this one, `2026-11-20`. */
  readonly readFromDay: string;
  retry: RetryState;
  isFinished: boolean;
}

/** The next part of a lane's log. */
export interface LogRequest {
  readonly lane: LaneKey;
  readonly after: number;
  /** Deliveries up to here may have attempts; those beyond have none. */
  readonly attemptedThrough: number;
  readonly limit: number;
  /** From `readFromDay` of a delivery up to `after`: partitions before it are not looked at. Null: all are. */
  readonly readFromDay: string | null;
}

/**
 * For each request the deliveries after `after`, in order, at most `limit`, with the results of earlier attempts. One
 * statement for all requests, and a second one where there may be attempts. By the primary keys of log and attempts,
 * in the partitions from `readFromDay` on.
 */
export async function listDeliveriesAfter(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
): Promise<LoggedDelivery[][]> {
  const firstDay = firstDayOf(requests);
  const { rows } = await sql<{
    place: number;
    sequence: string;
    eventId: string;
    readFromDay: string;
    eventType: string;
    body: string;
    isTriedOnce: boolean;
  }>`${PREPARED}
    select asked.place::int, log.sequence, log.event_id as "eventId", (log.day - 1)::text as "readFromDay", log.event_type as "eventType", log.body,
           log.origin <> 'event' as "isTriedOnce"
      from unnest(
        ${integerColumn(requests, ({ lane }) => lane.environmentId)}::int[],
        ${integerColumn(requests, ({ lane }) => lane.webhookId)}::int[],
        ${bigintColumn(requests, ({ after }) => after)}::bigint[],
        ${integerColumn(requests, ({ limit }) => limit)}::int[],
        ${textColumn(requests, ({ readFromDay }) => readFromDay)}::text[]
      ) with ordinality as asked (environment_id, webhook_id, after, most, first_day, place)
     cross join lateral (
        select sequence, day, event_id, event_type, body, origin from delivery_log
         where environment_id = asked.environment_id and webhook_id = asked.webhook_id and sequence > asked.after
           and day >= ${firstDay}::date and day >= coalesce(asked.first_day::date, '-infinity')
         order by sequence limit asked.most) log
     order by asked.place, log.sequence`.execute(database);
  const pages = requests.map((): LoggedDelivery[] => []);
  for (const { place, sequence, eventId, readFromDay, eventType, body, isTriedOnce } of rows) {
    pages[place - 1]?.push({
      sequence: Number(sequence),
      eventId,
      readFromDay,
      eventType,
      body,
      isTriedOnce,
      retry: NEVER_ATTEMPTED,
      isFinished: false,
    });
  }
  await addAttempts(database, requests, pages);
  // With their attempts, so it comes after.
  await readAgainWithoutBound(database, requests, pages);
  return pages;
}

/**
 * True where a database whose clock was days behind may have logged, or kept attempts, before the supposed first day:
 * the page is empty or has a gap, or a delivery that may have attempts has none.
 */
async function readAgainWithoutBound(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
  pages: LoggedDelivery[][],
): Promise<void> {
  const places = [...pages.keys()].filter(
    (place) =>
      requests[place]?.readFromDay !== null &&
      isIncomplete(requests[place] as LogRequest, pages[place] ?? []),
  );
  if (places.length === 0) return;
  const unbound = places.map((place) => ({
    ...(requests[place] as LogRequest),
    readFromDay: null,
  }));
  const found = await listDeliveriesAfter(database, unbound);
  for (const [index, place] of places.entries()) pages[place] = found[index] ?? [];
}

/** Hardly ever true: only what a worker had on its way when it died has no attempt before `attemptedThrough`. */
const isIncomplete = (
  { after, attemptedThrough }: LogRequest,
  page: readonly LoggedDelivery[],
): boolean =>
  page.length === 0 ||
  page.some(
    ({ sequence, retry, isFinished }, index) =>
      sequence !== after + 1 + index ||
      (sequence <= attemptedThrough && retry.attempts === 0 && !isFinished),
  );

/** A value of its own in the statement, so that Postgres leaves earlier partitions out when it plans. */
function firstDayOf(requests: readonly Pick<LogRequest, 'readFromDay'>[]): string {
  const days = requests.map(({ readFromDay }) => readFromDay ?? '-infinity');
  // Text of one form sorts as the days do.
  return days.includes('-infinity') ? '-infinity' : (days.toSorted()[0] ?? '-infinity');
}

async function addAttempts(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
  pages: readonly LoggedDelivery[][],
): Promise<void> {
  const ranges = requests.flatMap(({ lane, attemptedThrough }, place) => {
    const page = pages[place] ?? [];
    const from = page[0]?.sequence ?? Infinity;
    if (from > attemptedThrough) return [];
    return [{ lane, page, from, through: Math.min(attemptedThrough, page.at(-1)?.sequence ?? 0) }];
  });
  if (ranges.length === 0) return;
  const { rows } = await sql<{
    place: number;
    sequence: string;
    startedAt: Date;
    status: number | null;
    outcome: AttemptRecord['outcome'];
    failure: FailureClass | null;
  }>`${PREPARED}
    select asked.place::int, a.sequence, a.started_at as "startedAt", a.status, a.outcome, a.failure
      from unnest(
        ${integerColumn(ranges, ({ lane }) => lane.environmentId)}::int[],
        ${integerColumn(ranges, ({ lane }) => lane.webhookId)}::int[],
        ${bigintColumn(ranges, ({ from }) => from)}::bigint[],
        ${bigintColumn(ranges, ({ through }) => through)}::bigint[]
      ) with ordinality as asked (environment_id, webhook_id, first, last, place)
      join delivery_attempts a
        on a.environment_id = asked.environment_id and a.webhook_id = asked.webhook_id
       and a.sequence between asked.first and asked.last and a.day >= ${firstDayOf(requests)}::date
     order by asked.place, a.sequence, a.attempt`.execute(database);
  for (const { place, sequence, startedAt, status, outcome, failure } of rows) {
    const range = ranges[place - 1];
    const delivery = range?.page[Number(sequence) - range.from];
    if (!delivery) continue;
    delivery.isFinished = outcome !== 'retrying';
    if (failure === null) continue;
    delivery.retry = addFailure(delivery.retry, {
      startedAtMs: startedAt.getTime(),
      status,
      failure,
    });
  }
}
