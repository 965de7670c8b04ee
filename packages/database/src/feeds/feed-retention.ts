/**
 * Retention of feeds: events of the last days, up to a size a workspace. Sizes are measured once, in chunks of the log.
 * Removal first moves the cursor of the feed's delivery queue, so that a reader learns of it, and then deletes the
 * rows.
 *
 * Each step may be taken by several workers at once, and again after a crash at any place.
 *
 * Index: the primary keys of `lanes`, `delivery_log` and `feed_chunks`, unless a statement has another in its comment.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';

/** All feeds, of all workspaces. A sequential read by design, of an index that has feeds alone (`webhooks_feeds`). */
export async function listFeedKeys(database: DatabaseOrTransaction): Promise<LaneKey[]> {
  const { rows } = await sql<LaneKey>`
    select environment_id as "environmentId", webhook_id as "webhookId" from webhooks
     where feed_name is not null and deleted_at is null order by environment_id, webhook_id`.execute(
    database,
  );
  return rows;
}

/**
 * Measures the next chunk of a feed's log, of at most so many events. One worker at a time: two that begin at the same
 * place and see different ends would count its events twice. The lock is a statement of its own, because the next one
 * must see the chunks of the holder before.
 *
 * @returns how many it has. 0 if another worker measures this feed.
 */
export async function measureFeedChunk(
  transaction: Transaction,
  { environmentId, webhookId }: LaneKey,
  countMax: number,
): Promise<number> {
  const { rows: locked } = await sql<{ isMine: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`measure feed ${environmentId} ${webhookId}`}, 0)) as "isMine"`.execute(
    transaction,
  );
  if (!locked[0]?.isMine) return 0;
  const { rows } = await sql<{ count: number }>`
    with measured as (
      select greatest(l.cursor_sequence, coalesce((
               select max(c.through_sequence) from feed_chunks c
                where c.environment_id = l.environment_id and c.webhook_id = l.webhook_id), 0)) as through
        from lanes l where l.environment_id = ${environmentId} and l.webhook_id = ${webhookId}
    ), next as (
      select sequence, appended_at, octet_length(body) as size from delivery_log
       where environment_id = ${environmentId} and webhook_id = ${webhookId} and sequence > (select through from measured)
       order by sequence limit ${countMax}
    ), made as (
      insert into feed_chunks (environment_id, webhook_id, through_sequence, size_bytes, ended_at)
      select ${environmentId}, ${webhookId}, max(sequence), sum(size), max(appended_at) from next having count(*) > 0
          on conflict (environment_id, webhook_id, through_sequence) do nothing
    )
    select count(*)::int as count from next`.execute(transaction);
  return rows[0]?.count ?? 0;
}

/**
 * Forgets the chunks of a workspace that are older, or beyond the size that the newer ones of all its feeds have together.
 * Ages are by Postgres' clock.
 */
export async function forgetFeedChunks(
  database: DatabaseOrTransaction,
  environmentId: number,
  {
    ageSecondsMax,
    sizeBytesMax,
  }: { readonly ageSecondsMax: number; readonly sizeBytesMax: number },
): Promise<void> {
  await sql`
    with judged as (
      select webhook_id, through_sequence, ended_at,
             sum(size_bytes) over (order by ended_at desc, webhook_id, through_sequence desc) as size
        from feed_chunks where environment_id = ${environmentId}
    ), old as (
      select webhook_id, max(through_sequence) as through from judged
       where size > ${sizeBytesMax} or ended_at < now() - make_interval(secs => ${ageSecondsMax})
       group by webhook_id
    ), locked as (
      select l.webhook_id, old.through from lanes l join old using (webhook_id)
       where l.environment_id = ${environmentId} order by l.webhook_id for no key update of l
    ), moved as (
      update lanes l
         set cursor_sequence = greatest(l.cursor_sequence, locked.through),
             attempted_sequence = greatest(l.attempted_sequence, locked.through)
        from locked where l.environment_id = ${environmentId} and l.webhook_id = locked.webhook_id
    )
    delete from feed_chunks c using locked
     where c.environment_id = ${environmentId} and c.webhook_id = locked.webhook_id and c.through_sequence <= locked.through`.execute(
    database,
  );
}

/** Deletes rows of the log that are forgotten, at most so many. @returns how many. */
export async function clearForgotten(
  database: DatabaseOrTransaction,
  { environmentId, webhookId }: LaneKey,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with forgotten as (
      select log.sequence, log.day from delivery_log log
       where log.environment_id = ${environmentId} and log.webhook_id = ${webhookId}
         and log.sequence <= (
           select cursor_sequence from lanes where environment_id = ${environmentId} and webhook_id = ${webhookId})
       order by log.sequence limit ${limit}
    ), cleared as (
      delete from delivery_log log using forgotten f
       where log.environment_id = ${environmentId} and log.webhook_id = ${webhookId}
         and log.sequence = f.sequence and log.day = f.day
      returning 1
    )
    select count(*)::int as count from cleared`.execute(database);
  return rows[0]?.count ?? 0;
}
