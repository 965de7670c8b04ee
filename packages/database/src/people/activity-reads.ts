/**
 * A person's history, newest first: events, pages, screens and the other activities are rows of one
 * table, so a page of history is one index range (of each month's partition).
 */
import type { JsonObject } from '@sluice/domain/values/json';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface ActivityRow {
  readonly eventId: string;
  /** `event`, `page`, `screen`, `attribute_change`, … */
  readonly kind: string;
  readonly name: string | null;
  readonly data: JsonObject;
  /** Unix microseconds, in decimal digits: Postgres' own precision, without loss. */
  readonly occurredAtMicros: string;
  /** The same of the time of receipt. */
  readonly receivedAtMicros: string;
}

/** The last row of a page. */
export interface ActivityPosition {
  readonly occurredAtMicros: string;
  readonly receivedAtMicros: string;
  readonly eventId: string;
}

export interface ActivityPage {
  readonly environmentId: number;
  readonly personId: string;
  /** Activities that occurred or came before it are not shown. */
  readonly notBeforeMs: number;
  readonly kind: string | undefined;
  readonly name: string | undefined;
  /** Only changes of this attribute, which are of the kind `attribute_change`. */
  readonly attribute?: string;
  readonly after: ActivityPosition | undefined;
  readonly limit: number;
}

/**
 * Of one instant the latest arrival is first, by the time of receipt, whose microseconds are the order within a commit
 * batch (`events.ts`), and then by the id.
 *
 * Index `events_by_person (environment_id, person_id, occurred_at desc, event_id)`, read in the order of its instants
 * up to the limit. Rows of one instant are sorted as they come. The time of arrival leaves out the partitions before
 * it. `kind` and `name` filter the rows that were read: an index for each would cost time for every event that is
 * written, and a person's thirty days bound the rows that a rare one can scan.
 */
export async function listActivities(
  database: DatabaseOrTransaction,
  page: ActivityPage,
): Promise<ActivityRow[]> {
  const { environmentId, personId, notBeforeMs, kind, name, attribute, after, limit } = page;
  const afterPosition = after && timeOf(after.occurredAtMicros);
  const { rows } = await sql<ActivityRow>`
    select event_id as "eventId", kind, name, data,
           (extract(epoch from occurred_at) * 1000000)::bigint::text as "occurredAtMicros",
           (extract(epoch from received_at) * 1000000)::bigint::text as "receivedAtMicros"
    from events
    where environment_id = ${environmentId} and person_id = ${personId}::bigint
      and occurred_at >= ${new Date(notBeforeMs)} and received_at >= ${new Date(notBeforeMs)}
      ${kind === undefined ? sql`` : sql`and kind = ${kind}`}
      ${name === undefined ? sql`` : sql`and name = ${name}`}
      ${attribute === undefined ? sql`` : sql`and data ? ${attribute}`}
      ${
        afterPosition
          ? sql`and occurred_at <= ${afterPosition}
                and (occurred_at, received_at, event_id) < (${afterPosition}, ${timeOf(after.receivedAtMicros)}, ${after.eventId})`
          : sql``
      }
    order by occurred_at desc, received_at desc, event_id desc
    limit ${limit}`.execute(database);
  return rows;
}

/** Whole seconds and the rest apart, because an interval is multiplied in floating point. */
const timeOf = (micros: string) => sql`(
  timestamptz 'epoch' + (${micros}::bigint / 1000000) * interval '1 second'
                      + (${micros}::bigint % 1000000) * interval '1 microsecond')`;
