/**
 * The delivery log: one row an event to a webhook.
 *
 * Each lane's sequence has no gap: numbers are taken from the lane's row, whose lock is kept until
 * the commit batch's transaction ends, so they become visible in order and a reader that has seen n has
 * seen all before it.
 *
 * Walk: `worker/src/events/process-commit-batch.ts` calls `appendDeliveries` (step 9). Afterwards
 * `logged-deliveries.ts` reads the log (step 11). Attempts are written in `lane-progress.ts`, together with the cursor
 * (step 14).
 */
import { matchesFilters, type AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import { partFrom, type DeliveryPart } from '@sluice/domain/delivery/delivery-parts';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
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
import { SNAPSHOT } from './lane-snapshot.ts';
import { TARGET } from './lane-target.ts';
import { nameOf } from './lanes.ts';
import {
  HANDED_COUNT_MAX,
  handedLane,
  grantOf,
  type LaneTaking,
  type LoggedLane,
  type LoggedLaneRow,
} from './logged-lanes.ts';

/**
 * Logs a delivery of each event to each enabled webhook that chose its type, or to the webhooks that the event names.
 * One statement, for any number of events; two more if a webhook has filters; one more if there are opens or clicks,
 * because webhooks without `full_resolution` get only the first of them. Call it last in the transaction: it locks the
 * lanes' rows until the commit, in order of their key, so that two commit batches never deadlock.
 *
 * Bodies that are long together, such as a thousand events of a person with many attributes, are sent in parts
 * (`domain/src/delivery/delivery-parts.ts`): one statement for each part, after one that locks the lanes. Then no lease
 * is taken.
 *
 * Messages for endpoints of applications are a statement of their own. If there are other events too, one statement
 * before locks all lanes. Finds a workspace's own webhooks by `webhooks_of_workspace`, endpoints of applications by the
 * primary key, lanes, workspaces, accounts and merges by theirs.
 *
 * @param events - in the order in which the webhooks are to receive them.
 * @param taking - takes leases of lanes, and receives the logged deliveries (`logged-lanes.ts`). Absent: neither.
 * @returns lanes to wake after commit, without the lanes that wait for a retry probe anyway.
 */
export async function appendDeliveries(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
  taking?: LaneTaking,
): Promise<LoggedLane[]> {
  const isOfApplication = (event: ReportingEvent): boolean => event.applicationId !== undefined;
  if (!events.some(isOfApplication)) return append(transaction, events, 'workspace', taking);
  const own = events.filter((event) => !isOfApplication(event));
  const ofApplications = events.filter(isOfApplication);
  if (own.length === 0) return append(transaction, ofApplications, 'application', taking);
  await lockLanesOf(transaction, events);
  const lanes = await append(transaction, own, 'workspace', taking);
  const left = (taking?.countMax ?? 0) - lanes.filter(({ claimed }) => claimed).length;
  const takingLeft = taking && { ...taking, countMax: left };
  return [...lanes, ...(await append(transaction, ofApplications, 'application', takingLeft))];
}

/**
 * The kind of webhooks that get deliveries. A workspace's own are few, and are found by `webhooks_of_workspace`.
 * Endpoints of applications may be a hundred thousand, and are found by the events that name them.
 */
type Tellable = 'workspace' | 'application';

const isTellable = (tellable: Tellable) =>
  tellable === 'workspace'
    ? sql`webhooks.application_id is null`
    : sql`webhooks.application_id is not null`;

async function append(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
  tellable: Tellable,
  taking: LaneTaking | undefined,
): Promise<LoggedLane[]> {
  if (events.length === 0) return [];
  const repeats = await takeFirstEngagements(transaction, events);
  let part = partFrom(events, 0);
  if (part.end === events.length)
    return logPart(transaction, { ...part, repeats, tellable, taking });
  // Later parts log for other lanes than the first, so all are locked now, in their order.
  await lockLanesOf(transaction, events);
  const lanes = new Map<string, LoggedLane>();
  for (;;) {
    const logged = await logPart(transaction, { ...part, repeats, tellable, taking: undefined });
    for (const lane of logged) lanes.set(nameOf(lane), lane);
    if (part.end === events.length) return [...lanes.values()];
    part = partFrom(events, part.end);
  }
}

/**
 * By `webhooks_of_workspace`, for endpoints of applications by the primary key of `webhooks`; and by the primary key of
 * `lanes`.
 */
async function lockLanesOf(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
): Promise<void> {
  const environmentIds = [...new Set(events.map((event) => event.environmentId))];
  const named = new Set(
    events.flatMap(({ applicationId, webhookIds = [] }) =>
      applicationId === undefined ? [] : webhookIds,
    ),
  );
  await sql`
    with told as (
      select environment_id, webhook_id from webhooks
       where environment_id = any (${environmentIds}::int[]) and application_id is null and not disabled
       union all
      select environment_id, webhook_id from webhooks
       where environment_id = any (${environmentIds}::int[]) and webhook_id = any (${[...named]}::int[])
         and application_id is not null and not disabled
    )
    select from lanes join told using (environment_id, webhook_id)
     order by lanes.environment_id, lanes.webhook_id
       for no key update of lanes`.execute(transaction);
}

async function logPart(
  transaction: DatabaseOrTransaction,
  logging: Omit<Logging, 'filteredOut'>,
): Promise<LoggedLane[]> {
  const { events } = logging;
  // Events that name their webhooks have passed the filters.
  if (events.every(({ webhookIds }) => webhookIds !== undefined))
    return (await logOnce(transaction, { ...logging, filteredOut: [] })).lanes;
  // Hardly any webhook has filters: they are read only if the statement reports that one has.
  const unfiltered = await logOnce(transaction, { ...logging, filteredOut: undefined });
  if (!unfiltered.hasFilters) return unfiltered.lanes;
  const filteredOut = await listFilteredOut(transaction, events);
  return (await logOnce(transaction, { ...logging, filteredOut })).lanes;
}

interface Logging extends DeliveryPart {
  /** Places of opens and clicks that are not the first, among the events of all parts. */
  readonly repeats: ReadonlySet<number>;
  readonly tellable: Tellable;
  readonly taking: LaneTaking | undefined;
  /** Undefined: not examined. Then no delivery is logged if a webhook has filters. */
  readonly filteredOut: readonly UnwantedEvent[] | undefined;
}

async function logOnce(
  transaction: DatabaseOrTransaction,
  { events, start, bodies, bodiesWithContent, repeats, tellable, taking, filteredOut }: Logging,
): Promise<{ readonly lanes: LoggedLane[]; readonly hasFilters: boolean }> {
  const unwanted = [...(filteredOut ?? []), ...aboutItself(events)];
  const environmentIds = [...new Set(events.map((event) => event.environmentId))];
  const { leaseMs = 0, holderProcessId = 0, countMax = 0 } = taking ?? {};
  const grant = grantOf(taking);
  const handedCountMax = taking ? HANDED_COUNT_MAX : 0;
  const { rows } = await sql<
    (LoggedLaneRow | { readonly webhookId: null }) & { hasFilters: boolean }
  >`${PREPARED}
    with reported as (
      select * from unnest(
        ${integerColumn(events, (event) => event.environmentId)}::int[],
        ${textColumn(events, (event) => event.eventId)}::text[],
        ${textColumn(events, (event) => event.eventType)}::text[],
        ${timestampColumn(events, (event) => event.occurredAtMs)}::timestamptz[],
        ${textColumn(bodies, (body) => body)}::text[],
        ${textColumn(bodiesWithContent, (body) => body)}::text[],
        ${booleanColumn([...events.keys()], (place) => repeats.has(start + place))}::boolean[],
        ${textColumn(events, (event) => event.causeEventId ?? null)}::text[],
        ${bigintColumn(events, (event) => event.envelopeNumber ?? null)}::bigint[],
        ${bigintColumn(events, (event) => event.personId ?? null)}::bigint[],
        -- A list a row: an array of lists would have to be rectangular.
        ${textColumn(events, ({ webhookIds }) => (webhookIds ? `{${webhookIds.join(',')}}` : null))}::text[]
      ) with ordinality as r (environment_id, event_id, event_type, occurred_at, body, body_with_content, is_repeat, cause_event_id, envelope_number, person_id, webhook_ids, place)
    ), unwanted as (
      select * from unnest(
        ${integerColumn(unwanted, (pair) => pair.environmentId)}::int[],
        ${integerColumn(unwanted, (pair) => pair.webhookId)}::int[],
        ${bigintColumn(unwanted, (pair) => pair.place)}::bigint[]
      ) as u (environment_id, webhook_id, place)
    ), filters as materialized (
      select ${filteredOut === undefined}::boolean and exists (
               select from webhooks
                where environment_id = any (${environmentIds}::int[]) and attribute_filters is not null and application_id is null and not disabled) as are_needed
    ), matched as (
      select webhooks.environment_id, webhooks.webhook_id, r.event_id, r.event_type, r.occurred_at, r.cause_event_id, r.envelope_number, r.person_id, r.place,
             case when case when r.webhook_ids is null then webhooks.with_content else webhooks.with_person_attributes end then coalesce(r.body_with_content, r.body) else r.body end as body,
             row_number() over (partition by webhooks.environment_id, webhooks.webhook_id order by r.place) as step
        from reported r
        join filters on not filters.are_needed
        join webhooks on webhooks.environment_id = r.environment_id
                     and not webhooks.disabled and ${isTellable(tellable)}
                     ${tellable === 'application' ? sql`and webhooks.webhook_id = any (r.webhook_ids::int[])` : sql``}
                     and case when r.webhook_ids is null then r.event_type = any (webhooks.events) or '*' = any (webhooks.events)
                              else webhooks.webhook_id = any (r.webhook_ids::int[]) end
                     and (webhooks.full_resolution or not r.is_repeat)
                     and not exists (
                       select from unwanted u
                        where u.environment_id = r.environment_id and u.webhook_id = webhooks.webhook_id and u.place = r.place)
    ), counted as (
      select environment_id, webhook_id, count(*) as deliveries,
             case when count(*) <= ${handedCountMax} then array_agg(place::int order by place) end as places
        from matched group by environment_id, webhook_id
    ), locked as (
      -- Locked rows are as they are now, not as they were when the statement began.
      select lanes.environment_id, lanes.webhook_id, counted.deliveries, counted.places,
             ${grant.accountId} as account_id, ${grant.isFree} as is_free
        from lanes join counted using (environment_id, webhook_id) ${grant.tables}
       order by environment_id, webhook_id
         for no key update of lanes
    ), granted as (
      select *, is_free and count(*) filter (where is_free) over (order by environment_id, webhook_id) <= ${countMax} as is_claimed
        from locked
    ), advanced as (
      update lanes
         set last_sequence = last_sequence + granted.deliveries,
             fencing = case when is_claimed then fencing + 1 else fencing end,
             holder_process_id = case when is_claimed then ${holderProcessId} else holder_process_id end,
             lease_until = case when is_claimed then clock_timestamp() + ${leaseMs}::int * interval '1 millisecond' else lease_until end
        from granted
       where lanes.environment_id = granted.environment_id and lanes.webhook_id = granted.webhook_id
      returning lanes.environment_id, lanes.webhook_id, last_sequence - granted.deliveries as end_before, is_claimed,
                places, account_id, read_from_day, ${SNAPSHOT}
    ), logged as (
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body, cause_event_id, envelope_number, person_id)
      select environment_id, webhook_id, end_before + step, event_id, event_type, occurred_at, body, cause_event_id, envelope_number, person_id
        from matched join advanced using (environment_id, webhook_id)
    )
    select advanced.environment_id as "environmentId", advanced.webhook_id as "webhookId", is_claimed as "isClaimed",
           account_id::float8 as "accountId", read_from_day::text as "readFromDay", places, with_content as "withContent", with_person_attributes as "withPersonAttributes",
           ((now() at time zone 'UTC')::date - 1)::text as "dayBefore", state, cursor, "attemptedThrough", "nextProbeAt",
           "concurrencyLimit", "lastSequence", fencing, "nextStartAt", ${TARGET},
           exists (
             select from lane_merges m
              where m.environment_id = advanced.environment_id and m.webhook_id = advanced.webhook_id offset 0) as "hasMerges",
           filters.are_needed as "hasFilters"
      from filters
      left join (advanced join webhooks using (environment_id, webhook_id)) on state = 'healthy' and feed_name is null`.execute(
    transaction,
  );
  const logged = rows.flatMap((row) => (row.webhookId === null ? [] : row));
  const lanes = logged.map((row) => {
    const { environmentId, webhookId, lastSequence } = row;
    if (!taking) return { environmentId, webhookId, lastSequence: Number(lastSequence) };
    return handedLane(row, events, (place) => {
      const isIncoming = events[place]?.webhookIds !== undefined;
      const withContent = isIncoming ? row.withPersonAttributes : row.withContent;
      return String((withContent && bodiesWithContent[place]) || bodies[place]);
    });
  });
  return { lanes, hasFilters: rows[0]?.hasFilters === true };
}

/** An event, by its place from 1, that is not for a webhook. */
interface UnwantedEvent extends LaneKey {
  readonly place: number;
}

/** Events that are about one webhook, which does not receive them. */
const aboutItself = (events: readonly ReportingEvent[]): UnwantedEvent[] =>
  events.flatMap(({ environmentId, exceptWebhookId }, index) =>
    exceptWebhookId === undefined
      ? []
      : [{ environmentId, webhookId: exceptWebhookId, place: index + 1 }],
  );

/**
 * Pairs of event and webhook that a filter leaves out. By `webhooks_filtered`, which has only webhooks with filters.
 */
async function listFilteredOut(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
): Promise<readonly UnwantedEvent[]> {
  const environmentIds = [...new Set(events.map((event) => event.environmentId))];
  const { rows } = await sql<LaneKey & { filters: AttributeFilter[] }>`${PREPARED}
    select environment_id as "environmentId", webhook_id as "webhookId", attribute_filters as filters
      from webhooks
     where environment_id = any (${environmentIds}::int[]) and attribute_filters is not null and application_id is null
       and not disabled`.execute(transaction);
  return rows.flatMap(({ environmentId, webhookId, filters }) =>
    events.flatMap((event, index) =>
      event.environmentId === environmentId &&
      event.webhookIds === undefined &&
      !matchesFilters(event, filters)
        ? [{ environmentId, webhookId, place: index + 1 }]
        : [],
    ),
  );
}
