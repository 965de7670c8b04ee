/** Taken event ids: unique per workspace, across APIs, commit batches and days. */
import type { EventClaim, EventKey } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { inTenantParts, isDistributed, withReasons } from '../connection/tenant-statements.ts';

/**
 * Takes event ids for this transaction without a look whether they were taken: 6 µs of Postgres' CPU an id less than
 * `claimEventIds`. By the primary key.
 *
 * @param claims - each id once.
 * @throws a unique violation (`isConflict`) if one was taken, or another transaction takes one. The transaction is then
 *   void; run again with `claimEventIds`, it finds the taken ids.
 */
export async function takeEventIds(
  transaction: DatabaseOrTransaction,
  claims: readonly EventClaim[],
): Promise<void> {
  if (claims.length === 0) return;
  await sql`${PREPARED}
    insert into event_ids (environment_id, event_id, received_at, envelope_number, source)
    select ${columnsOf(claims)} ${await withReasons(transaction)}`.execute(transaction);
}

/**
 * Takes event ids for this transaction and returns the ones that were already taken. By the primary key.
 *
 * Looks first and inserts the rest without `on conflict`, which looks each up once more and touches each row again to
 * confirm it: 2.5 ms of Postgres' time instead of 6 for 1,000 ids. An id that another transaction took in between, or
 * is about to take, is waited for and then is a unique violation: the caller starts again and finds it.
 *
 * `lateral … limit 1` has each id looked up in the index. For a join, Postgres made a hash of the whole table, because
 * it estimated the table as small: 15.5 µs of its CPU an id instead of 9.5, with 35,000 there.
 *
 * @param claims - each id once.
 */
export async function claimEventIds(
  transaction: DatabaseOrTransaction,
  claims: readonly EventClaim[],
): Promise<EventKey[]> {
  if (claims.length === 0) return [];
  const isOnNodes = await isDistributed(transaction);
  const taken = await inTenantParts(transaction, [claims], async (part) => {
    const { rows } = await sql<EventKey>`${PREPARED}
      with offered (environment_id, event_id, received_at, envelope_number, source) as materialized (
        select ${columnsOf(part.only(claims))}
      ), taken as materialized (
        select o.environment_id, o.event_id from offered o, lateral (
          select from event_ids e
           where e.environment_id = o.environment_id and e.event_id = o.event_id and ${part.isOf('e')} limit 1
        ) as there
      )
      ${isOnNodes ? sql`` : insertTheRest}
      select environment_id as "environmentId", event_id as "eventId" from taken`.execute(
      transaction,
    );
    return rows;
  });
  // An insert beside the look would be sent to every node, and fail while any node is away.
  if (isOnNodes) await takeEventIds(transaction, without(claims, taken));
  return taken;
}

const insertTheRest = sql`, claimed as (
        insert into event_ids (environment_id, event_id, received_at, envelope_number, source)
        select environment_id, event_id, received_at, envelope_number, source from offered
         where (environment_id, event_id) not in (select environment_id, event_id from taken)
      )`;

function without(claims: readonly EventClaim[], taken: readonly EventKey[]): EventClaim[] {
  const keys = new Set(taken.map(({ environmentId, eventId }) => `${environmentId} ${eventId}`));
  return claims.filter(({ environmentId, eventId }) => !keys.has(`${environmentId} ${eventId}`));
}

/** In the one order in which all take ids, so that there is no deadlock. */
function columnsOf(claims: readonly EventClaim[]) {
  const ordered = claims.toSorted(byKey);
  return sql`
        unnest(${integerColumn(ordered, (claim) => claim.environmentId)}::int[]),
        unnest(${textColumn(ordered, (claim) => claim.eventId)}::text[]),
        unnest(${timestampColumn(ordered, (claim) => claim.receivedAtMs)}::timestamptz[]),
        unnest(${bigintColumn(ordered, (claim) => claim.envelopeNumber ?? null)}::bigint[]),
        unnest(${textColumn(ordered, (claim) => claim.source ?? null)}::text[])`;
}

function byKey(one: EventKey, other: EventKey): number {
  if (one.environmentId !== other.environmentId) return one.environmentId - other.environmentId;
  if (one.eventId === other.eventId) return 0;
  return one.eventId < other.eventId ? -1 : 1;
}
