/**
 * Merges of people whose deliveries wait.
 *
 * The deliveries of a merged person, logged before, and the deliveries of the person whom they were merged into are
 * about one person, and keep their order (`domain/src/delivery/lane.ts`).
 *
 * A merge is kept for each lane that has waiting deliveries at its time, and for as long as these wait. So a lane
 * without merges pays one look in an index for each page of its log (`logged-deliveries.ts`), and no cost for a
 * delivery.
 *
 * Every statement finds its rows by the primary key of lanes or of lane_merges, by `webhooks_of_workspace` or by
 * `lane_merges_into`, except `deleteEndedLaneMerges`, which reads all of them.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { bigintColumn, integerColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import type { PersonMove } from '@sluice/domain/state/loaded-state';

/** Call it before the transaction logs deliveries: its own deliveries already have the merged person. */
export async function recordLaneMerges(
  transaction: DatabaseOrTransaction,
  moves: readonly Pick<PersonMove, 'environmentId' | 'fromPersonId' | 'toPersonId'>[],
): Promise<void> {
  if (moves.length === 0) return;
  await sql`
    insert into lane_merges (environment_id, webhook_id, person_id, into_person_id, through_sequence)
    select lanes.environment_id, lanes.webhook_id, m.person_id, m.into_person_id, lanes.last_sequence
      from unnest(
        ${integerColumn(moves, (move) => move.environmentId)}::int[],
        ${bigintColumn(moves, (move) => move.fromPersonId)}::bigint[],
        ${bigintColumn(moves, (move) => move.toPersonId)}::bigint[]
      ) as m (environment_id, person_id, into_person_id)
      -- Endpoints of applications, of which there may be many, are told of no person; feeds are read in the order of the log.
      join webhooks w on w.environment_id = m.environment_id and w.application_id is null and w.feed_name is null
      join lanes on lanes.environment_id = w.environment_id and lanes.webhook_id = w.webhook_id
                and lanes.cursor_sequence < lanes.last_sequence
        on conflict (environment_id, webhook_id, person_id) do update
       set into_person_id = excluded.into_person_id, through_sequence = excluded.through_sequence`.execute(
    transaction,
  );
}

/** Whose merges are wanted, of one lane. */
export interface MergeRequest {
  readonly lane: LaneKey;
  readonly personIds: readonly number[];
}

/**
 * For each request the merges of its people, and of the people who were merged with them, directly or by others.
 *
 * @returns for each request, by merged person: the person whom they are part of now.
 */
export async function listLaneMerges(
  database: DatabaseOrTransaction,
  requests: readonly MergeRequest[],
): Promise<Map<number, number>[]> {
  const asked = requests.flatMap(({ lane, personIds }, place) =>
    personIds.map((personId) => ({ ...lane, personId, place })),
  );
  const { rows } = await sql<{ place: number; personId: number; intoPersonId: number }>`
    with recursive reached as (
      select * from unnest(
        ${integerColumn(asked, ({ place }) => place)}::int[],
        ${integerColumn(asked, ({ environmentId }) => environmentId)}::int[],
        ${integerColumn(asked, ({ webhookId }) => webhookId)}::int[],
        ${bigintColumn(asked, ({ personId }) => personId)}::bigint[]
      ) as a (place, environment_id, webhook_id, person_id)
       union
      select r.place, r.environment_id, r.webhook_id, next.person_id
        from reached r
       cross join lateral (
         select m.into_person_id as person_id from lane_merges m
          where m.environment_id = r.environment_id and m.webhook_id = r.webhook_id and m.person_id = r.person_id
          union all
         select m.person_id from lane_merges m
          where m.environment_id = r.environment_id and m.webhook_id = r.webhook_id and m.into_person_id = r.person_id
       ) next
    )
    select place, person_id::float8 as "personId", into_person_id::float8 as "intoPersonId"
      from reached join lane_merges using (environment_id, webhook_id, person_id)`.execute(
    database,
  );
  const merges = requests.map(() => new Map<number, number>());
  for (const { place, personId, intoPersonId } of rows) merges[place]?.set(personId, intoPersonId);
  for (const each of merges)
    for (const personId of each.keys()) each.set(personId, followMerges(each, personId));
  return merges;
}

/** A person is never merged into themselves, by way of others either: the merged person is gone. */
function followMerges(merges: ReadonlyMap<number, number>, personId: number): number {
  let followed = personId;
  for (let left = merges.size; left > 0; left--) followed = merges.get(followed) ?? followed;
  return followed;
}

/** Deletes the merges that no waiting delivery needs. Run it every minute, on any number of workers. */
export async function deleteEndedLaneMerges(database: DatabaseOrTransaction): Promise<void> {
  await sql`
    delete from lane_merges m
     where not exists (
       select from lanes where lanes.environment_id = m.environment_id and lanes.webhook_id = m.webhook_id
          and lanes.cursor_sequence < m.through_sequence)`.execute(database);
}
