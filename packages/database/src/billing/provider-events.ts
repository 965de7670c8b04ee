/**
 * Events of the payment provider, stored once by their ids. An event is applied later. It is a hint to look, so neither
 * its order nor its repetition matters. It has no tenant until it is looked at. By the primary key and
 * `vendor_events_due`.
 *
 * One that comes again after it was deleted is applied again and finds everything done: that a purchase is paid once is
 * ensured by the purchase workflow and its grant, not here.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface ProviderEvent {
  readonly eventId: string;
  readonly type: string;
  /** Of the payment provider's object that it is about. */
  readonly objectId: string;
}

/** @returns false if it was there before. */
export async function insertProviderEvent(
  database: DatabaseOrTransaction,
  event: ProviderEvent,
  nowMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    insert into vendor_events (event_id, type, object_id, received_at, next_at)
    values (${event.eventId}, ${event.type}, ${event.objectId}, ${new Date(nowMs)}, ${new Date(nowMs)})
    on conflict (event_id) do nothing returning 1`.execute(database);
  return rows.length > 0;
}

/**
 * Takes due events, and puts them off meanwhile, so that two workers rarely take one: by `firstMs`, twice as long each
 * time after it, and at most `mostMs`.
 */
export async function claimProviderEvents(
  database: DatabaseOrTransaction,
  nowMs: number,
  retry: { readonly firstMs: number; readonly mostMs: number },
  limit: number,
): Promise<ProviderEvent[]> {
  const { rows } = await sql<ProviderEvent>`
    update vendor_events set
       next_at = ${new Date(nowMs)}::timestamptz + interval '1 ms'
         * least(${retry.firstMs} * 2 ^ least(attempt_count, 30), ${retry.mostMs}),
       attempt_count = attempt_count + 1
     where event_id in (
       select event_id from vendor_events
        where settled_at is null and next_at <= ${new Date(nowMs)}
        order by next_at limit ${limit} for update skip locked)
    returning event_id as "eventId", type, object_id as "objectId"`.execute(database);
  return rows;
}

export async function settleProviderEvent(
  database: DatabaseOrTransaction,
  eventId: string,
  nowMs: number,
): Promise<void> {
  await sql`
    update vendor_events set settled_at = ${new Date(nowMs)} where event_id = ${eventId}`.execute(
    database,
  );
}

/**
 * Time of receipt of the oldest event that is not applied yet; undefined if no event waits. It is the installation's,
 * for its metrics. Reads `vendor_events_due`, which has only waiting events.
 */
export async function findOldestWaitingEvent(
  database: DatabaseOrTransaction,
): Promise<Date | undefined> {
  const { rows } = await sql<{ receivedAt: Date | null }>`
    select min(received_at) as "receivedAt" from vendor_events where settled_at is null`.execute(
    database,
  );
  return rows[0]?.receivedAt ?? undefined;
}

/** Forgets events that were worked off so long ago, the first first. Index: `vendor_events_settled`. At most `limit` at a time. */
export async function clearProviderEvents(
  database: DatabaseOrTransaction,
  settledBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    delete from vendor_events where event_id in (
      select event_id from vendor_events
       where settled_at < ${new Date(settledBeforeMs)} order by settled_at limit ${limit})`.execute(
    database,
  );
}
