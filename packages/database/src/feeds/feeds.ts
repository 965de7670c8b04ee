/**
 * Feeds: subscriptions of a workspace that a consumer reads from the delivery log.
 *
 * The consumer reads at its own pace. A feed without a reader costs only the rows of the log. Retention:
 * `feed-retention.ts`.
 *
 * Index: `webhooks_feeds`, and the primary keys of `lanes` and `delivery_log`, unless a statement has another in its
 * comment.
 */
import type { AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { integerColumn, bigintColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

export interface FeedSettings {
  readonly events: readonly string[];
  /** Null: all. */
  readonly eventNames: readonly string[] | null;
  /** Null: every event of the chosen types. */
  readonly attributeFilters: readonly AttributeFilter[] | null;
  readonly fullResolution: boolean;
  readonly withContent: boolean;
  readonly withImports: boolean;
  readonly withLate: boolean;
  readonly withPersonAttributes: boolean;
}

/** How far it goes: of the first event that is kept the number before, and the number of the last event. */
export interface FeedRange {
  readonly forgottenThrough: number;
  readonly lastSequence: number;
}

export interface Feed extends FeedSettings, FeedRange, LaneKey {
  readonly name: string;
  readonly createdAt: Date;
}

const FEED = sql`
  w.environment_id as "environmentId", w.webhook_id as "webhookId", w.feed_name as name, w.events, w.event_names as "eventNames",
  w.attribute_filters as "attributeFilters", w.full_resolution as "fullResolution", w.with_content as "withContent",
  w.with_imports as "withImports", w.with_late as "withLate", w.with_person_attributes as "withPersonAttributes",
  w.created_at as "createdAt", l.cursor_sequence::float8 as "forgottenThrough", l.last_sequence::float8 as "lastSequence"`;

/** By their names: there are few. */
export async function listFeeds(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<Feed[]> {
  const { rows } = await sql<Feed>`
    select ${FEED} from webhooks w join lanes l using (environment_id, webhook_id)
     where w.environment_id = ${environmentId} and w.feed_name is not null and w.deleted_at is null
     order by w.feed_name`.execute(database);
  return rows;
}

export async function findFeed(
  database: DatabaseOrTransaction,
  environmentId: number,
  name: string,
): Promise<Feed | undefined> {
  const { rows } = await sql<Feed>`${PREPARED}
    select ${FEED} from webhooks w join lanes l using (environment_id, webhook_id)
     where w.environment_id = ${environmentId} and w.feed_name = ${name} and w.deleted_at is null`.execute(
    database,
  );
  return rows[0];
}

export interface FeedEvent {
  readonly sequence: number;
  readonly eventType: string;
  /** As a webhook gets it. */
  readonly body: string;
}

/**
 * The events after one, in order and without a gap, up to a number and a size: at least one, if there is one. By the primary
 * key of the log, of each day that is kept.
 */
export async function listFeedEvents(
  database: DatabaseOrTransaction,
  { environmentId, webhookId }: LaneKey,
  after: number,
  limit: number,
  sizeBytesMax: number,
): Promise<FeedEvent[]> {
  const { rows } = await sql<FeedEvent>`${PREPARED}
    select sequence, "eventType", body
      from (
        select sequence::float8 as sequence, event_type as "eventType", body,
               sum(octet_length(body)) over (order by delivery_log.sequence) as size, row_number() over (order by delivery_log.sequence) as place
          from (
            select sequence, event_type, body from delivery_log
             where environment_id = ${environmentId} and webhook_id = ${webhookId} and sequence > ${after}
             order by sequence limit ${limit}) delivery_log) page
     where place = 1 or size <= ${sizeBytesMax}
     order by sequence`.execute(database);
  return rows;
}

/** A reader who waits for events after a position. */
export interface FeedPlace extends LaneKey {
  readonly after: number;
}

/**
 * The given places that need not wait any more: a new event has come, or the feed is gone. By the primary key of lanes.
 */
export async function listAdvancedFeeds(
  database: DatabaseOrTransaction,
  places: readonly FeedPlace[],
): Promise<number[]> {
  const { rows } = await sql<{ index: number }>`${PREPARED}
    select asked.place::int - 1 as index
      from unnest(
        ${integerColumn(places, (place) => place.environmentId)}::int[],
        ${integerColumn(places, (place) => place.webhookId)}::int[],
        ${bigintColumn(places, (place) => place.after)}::bigint[]
      ) with ordinality as asked (environment_id, webhook_id, after, place)
      left join lanes l on l.environment_id = asked.environment_id and l.webhook_id = asked.webhook_id
     where l.last_sequence is null or l.last_sequence > asked.after`.execute(database);
  return rows.map(({ index }) => index);
}
