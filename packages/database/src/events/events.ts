/**
 * Events and the other activities of people. Inserted as they are found, changed only when an
 * anonymous one becomes somebody's or its person is merged (`people.ts`).
 */
import type { AnonymousAttachment, EventRow } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import {
  bigintColumn,
  integerColumn,
  jsonColumn,
  microsecondColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, withReasons } from '../connection/tenant-statements.ts';

/** A flush has fewer operations: 4 MB of the shortest calls are 50,000. */
const FLUSH_INDEX_MAX = 99_999;
/** So far behind its time of receipt an event may be stored, by its place in its flush. */
export const PLACES_MS_MAX = 100;

/**
 * Inserts events. Their ids are claimed before (`event-ids.ts`), or made by us. The arrays stand in the select list,
 * not in `from`: there Postgres would first write each of them to a tuple store (8 µs of its CPU to read a row instead
 * of 6.5).
 *
 * Events of one millisecond keep their order in the microseconds of `received_at`, by which events of one instant are
 * listed (`activity-reads.ts`); ids that clients make have no order. An event has the microsecond of its operation's
 * index in the flush, so that also events of one call that were applied in several transactions are in order. A call of
 * more than 1,000 items goes on in the next milliseconds; its answer takes longer than that.
 */
export async function insertEvents(
  transaction: DatabaseOrTransaction,
  events: readonly EventRow[],
): Promise<void> {
  if (events.length === 0) return;
  const microsecondsOf = placesInFlushes();
  await sql`${PREPARED}
    insert into events (environment_id, person_id, anonymous_id, event_id, kind, name, data, occurred_at, received_at, processed_at)
    select
      unnest(${integerColumn(events, (event) => event.environmentId)}::int[]),
      unnest(${bigintColumn(events, (event) => event.personId)}::bigint[]),
      unnest(${textColumn(events, (event) => event.anonymousId)}::text[]),
      unnest(${textColumn(events, (event) => event.eventId)}::text[]),
      unnest(${textColumn(events, (event) => event.kind)}::text[]),
      unnest(${textColumn(events, (event) => event.name)}::text[]),
      unnest(${jsonColumn(events, (event) => event.data)}::jsonb[]),
      unnest(${timestampColumn(events, (event) => event.occurredAtMs)}::timestamptz[]),
      unnest(${microsecondColumn(events, (event) => event.receivedAtMs, microsecondsOf)}::timestamptz[]),
      unnest(${timestampColumn(events, (event) => event.processedAtMs)}::timestamptz[])
    ${await withReasons(transaction)}`.execute(transaction);
}

/**
 * Returns a function that takes events in their order, and gives the microseconds between an event's time of receipt
 * and its stored time. Events of one operation share one value: our own ids, which only grow, give their order.
 */
function placesInFlushes(): (event: EventRow) => number {
  // All milliseconds except the one of `last`, which nearly all events have: to look each up was 1 % of the worker's
  // time.
  const lastByMs = new Map<number, number>();
  let before: EventRow | undefined;
  let lastMs = 0;
  let last = -1;
  const findFree = (wanted: number): number => {
    lastByMs.set(lastMs, last);
    let place = wanted;
    // Of another flush of the same millisecond that is applied together with this one.
    for (;;) {
      const taken = lastByMs.get(Math.floor(place / 1_000));
      if (taken === undefined || taken < place) return place;
      place = taken + 1;
    }
  };
  return (event) => {
    const { receivedAtMs, envelopeNumber, flushIndex = 0 } = event;
    const isOfSameOperation =
      before?.flushIndex === flushIndex &&
      before.envelopeNumber === envelopeNumber &&
      before.receivedAtMs === receivedAtMs;
    const start = receivedAtMs * 1_000;
    if (!isOfSameOperation) {
      const wanted = start + Math.min(flushIndex, FLUSH_INDEX_MAX);
      const isNext = wanted > last && wanted < (lastMs + 1) * 1_000;
      last = isNext ? wanted : findFree(wanted);
      if (!isNext) lastMs = Math.floor(last / 1_000);
    }
    before = event;
    return Math.min(last - start, FLUSH_INDEX_MAX);
  };
}

/**
 * Assigns waiting anonymous events to people; their anonymous ids are held. By `events_by_anonymous_id`; partitions
 * before the oldest time asked for are not read.
 */
export async function attachAnonymousEvents(
  transaction: DatabaseOrTransaction,
  attachments: readonly AnonymousAttachment[],
): Promise<void> {
  if (attachments.length === 0) return;
  const oldest = new Date(Math.min(...attachments.map((attachment) => attachment.sinceMs)));
  await forTenantParts(transaction, [attachments], (part) => {
    const own = part.only(attachments);
    return sql`${PREPARED}
      update events e set person_id = a.person_id, processed_at = a.processed_at
      from unnest(
        ${integerColumn(own, (attachment) => attachment.environmentId)}::int[],
        ${textColumn(own, (attachment) => attachment.anonymousId)}::text[],
        ${bigintColumn(own, (attachment) => attachment.personId)}::bigint[],
        ${timestampColumn(own, (attachment) => attachment.sinceMs)}::timestamptz[],
        ${timestampColumn(own, (attachment) => attachment.untilMs)}::timestamptz[],
        ${timestampColumn(own, (attachment) => attachment.processedAtMs)}::timestamptz[]
      ) as a (environment_id, anonymous_id, person_id, since, until, processed_at)
      where e.environment_id = a.environment_id and e.anonymous_id = a.anonymous_id and e.person_id is null
        and e.occurred_at >= a.since and e.received_at >= a.since and e.received_at >= ${oldest}
        and e.received_at < coalesce(a.until, 'infinity')
        and ${part.isOf('e')}`.execute(transaction);
  });
}

/**
 * Makes the partitions of the months from this one on that are not there yet. May be called by
 * several at once.
 *
 * @returns how many were made.
 */
export async function makeEventPartitions(
  database: DatabaseOrTransaction,
  monthCount: number,
): Promise<number> {
  const { rows } = await sql<{ made: number }>`
    select make_event_partitions(now()::date, ${monthCount}::int) as made`.execute(database);
  return rows[0]?.made ?? 0;
}
