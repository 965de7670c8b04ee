/** Events of a workspace with their bodies: one by its id, or the latest that fit. */
import type { JsonObject } from '@sluice/domain/values/json';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { PLACES_MS_MAX } from './events.ts';

export interface StoredEvent {
  readonly eventId: string;
  readonly kind: string;
  readonly name: string | null;
  readonly data: JsonObject;
  /** int8, in decimal digits. Null: it belongs to no person yet. */
  readonly personId: string | null;
  readonly anonymousId: string | null;
  readonly occurredAt: Date;
  readonly receivedAt: Date;
}

const COLUMNS = sql`
  event_id as "eventId", kind, name, data, person_id as "personId", anonymous_id as "anonymousId",
  occurred_at as "occurredAt", received_at as "receivedAt"`;

/** By the primary key of `event_ids`, then `events_by_arrival` in the partition of the time in that row. */
export async function findEvent(
  database: DatabaseOrTransaction,
  environmentId: number,
  eventId: string,
): Promise<StoredEvent | undefined> {
  const { rows } = await sql<StoredEvent>`
    with arrival as materialized (
      select received_at from event_ids where environment_id = ${environmentId} and event_id = ${eventId})
    select ${COLUMNS} from events
     where environment_id = ${environmentId} and event_id = ${eventId}
       and received_at >= (select received_at from arrival)
       and received_at < (select received_at from arrival) + ${PLACES_MS_MAX}::int * interval '1 millisecond'`.execute(
    database,
  );
  return rows[0];
}

/** Kinds of events from calls; the other kinds are changes that calls caused. */
const TRACKED = ['event', 'page', 'screen'];

export interface EventListFilter {
  readonly name: string | undefined;
  /** int8, in decimal digits. */
  readonly personId: string | undefined;
  /** Received at it or later. */
  readonly sinceMs: number;
}

/** Last event of a page: Unix microseconds, in decimal digits, and the id. */
export interface EventPosition {
  readonly receivedAtMicros: string;
  readonly eventId: string;
}

export interface EventList {
  readonly events: readonly (StoredEvent & { readonly receivedAtMicros: string })[];
  /** Undefined if no older event can match. */
  readonly next: EventPosition | undefined;
}

/**
 * Newest received first: at most `limit` that match, out of at most `scanLimit` examined. By `events_by_arrival`,
 * backwards. The filters for a name or a person apply to the rows that were read: an index of names would cost time for
 * every event that is written.
 */
export async function listEvents(
  database: DatabaseOrTransaction,
  environmentId: number,
  { name, personId, sinceMs }: EventListFilter,
  before: EventPosition | undefined,
  { limit, scanLimit }: { readonly limit: number; readonly scanLimit: number },
): Promise<EventList> {
  const at =
    before &&
    sql`(timestamptz 'epoch' + (${before.receivedAtMicros}::bigint / 1000000) * interval '1 second'
                             + (${before.receivedAtMicros}::bigint % 1000000) * interval '1 microsecond')`;
  const { rows } = await sql<
    StoredEvent & {
      readonly receivedAtMicros: string;
      readonly isMatch: boolean;
    }
  >`
    with examined as materialized (
      select event_id, kind, name, person_id, received_at from events
       where environment_id = ${environmentId} and received_at >= ${new Date(sinceMs)}
         ${before && at ? sql`and received_at <= ${at} and (received_at, event_id) < (${at}, ${before.eventId})` : sql``}
       order by received_at desc, event_id desc limit ${scanLimit}
    ), matching as (
      select * from examined
       where kind = any(${TRACKED}::text[])
         ${name === undefined ? sql`` : sql`and name = ${name}`}
         ${personId === undefined ? sql`` : sql`and person_id = ${personId}::bigint`}
       order by received_at desc, event_id desc limit ${limit}
    ), shown as (
      select event_id, received_at, true as is_match from matching
      union all
      -- Where the next page goes on after one that is short.
      select event_id, received_at, false from (
        select event_id, received_at from examined order by received_at, event_id limit 1) oldest
       where (select count(*) from examined) = ${scanLimit} and (select count(*) from matching) < ${limit}
    )
    select e.event_id as "eventId", e.kind, e.name, e.data, e.person_id as "personId", e.anonymous_id as "anonymousId",
           e.occurred_at as "occurredAt", e.received_at as "receivedAt",
           (extract(epoch from e.received_at) * 1000000)::bigint::text as "receivedAtMicros", shown.is_match as "isMatch"
      from shown join events e on e.environment_id = ${environmentId} and e.received_at = shown.received_at
                              and e.event_id = shown.event_id
     order by shown.is_match desc, e.received_at desc, e.event_id desc`.execute(database);
  const events = rows.filter(({ isMatch }) => isMatch);
  const last = events.length === limit ? events.at(-1) : rows.find(({ isMatch }) => !isMatch);
  return {
    events,
    next: last && { receivedAtMicros: last.receivedAtMicros, eventId: last.eventId },
  };
}
