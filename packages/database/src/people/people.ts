/** People: locked by number, written as whole rows, removed with all that hangs on them. */
import type { AttributePlaces } from '@sluice/domain/state/attribute-places';
import type { JsonObject } from '@sluice/domain/values/json';
import type { PersonKey, PersonMove, PersonRow } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import {
  bigintColumn,
  booleanColumn,
  integerColumn,
  jsonColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import {
  forTenantParts,
  inTenantParts,
  isDistributed,
  withReasons,
} from '../connection/tenant-statements.ts';

interface StoredPerson {
  readonly environmentId: number;
  /** int8, in decimal digits. */
  readonly personId: string;
  readonly id: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly attributes: JsonObject;
  readonly unsubscribed: boolean | null;
  readonly attributesAt: Date | null;
  readonly attributePlaces: AttributePlaces | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const COLUMNS = sql`
  p.environment_id as "environmentId", p.person_id as "personId", p.id, p.email, p.phone, p.attributes,
  p.unsubscribed, p.attributes_at as "attributesAt",
  p.attribute_places as "attributePlaces", p.created_at as "createdAt", p.updated_at as "updatedAt"`;

/**
 * Locks the existing people among the named ones, in order of the primary key. Gives each row as it is once the lock is
 * held, so that the latest write of another shard is never lost.
 *
 * @param keys - each once.
 */
export async function lockPeople(
  transaction: DatabaseOrTransaction,
  keys: readonly PersonKey[],
): Promise<PersonRow[]> {
  if (keys.length === 0) return [];
  return inTenantParts(transaction, [keys], async (part) => {
    const { rows } = await sql<StoredPerson>`${PREPARED}
      select ${COLUMNS}
      from ${keyRows(part.only(keys))}
      join people p using (environment_id, person_id)
      where ${part.isOf('p')}
      order by p.environment_id, p.person_id
      for update of p`.execute(transaction);
    return rows.map(personOf);
  });
}

/**
 * Reads the existing people among the named ones, without a lock: another transaction may change them. By the primary
 * key.
 */
export async function readPeople(
  transaction: DatabaseOrTransaction,
  keys: readonly PersonKey[],
): Promise<PersonRow[]> {
  if (keys.length === 0) return [];
  return inTenantParts(transaction, [keys], async (part) => {
    const { rows } = await sql<StoredPerson>`${PREPARED}
      select ${COLUMNS}
      from ${keyRows(part.only(keys))}
      join people p using (environment_id, person_id)
      where ${part.isOf('p')}`.execute(transaction);
    return rows.map(personOf);
  });
}

const personOf = ({
  personId,
  attributesAt,
  createdAt,
  updatedAt,
  ...row
}: StoredPerson): PersonRow => ({
  ...row,
  personId: Number(personId),
  attributesAtMs: attributesAt?.getTime() ?? null,
  createdAtMs: createdAt.getTime(),
  updatedAtMs: updatedAt.getTime(),
});

/**
 * Inserts people whose numbers are new. The number of people follows by triggers. A table on many nodes cannot have
 * such triggers; then this function counts.
 */
export async function insertPeople(
  transaction: DatabaseOrTransaction,
  people: readonly PersonRow[],
): Promise<void> {
  if (people.length === 0) return;
  await sql`${PREPARED}
    insert into people (environment_id, person_id, id, email, phone, attributes, unsubscribed, attributes_at, attribute_places, created_at, updated_at)
    select * from ${fullRows(people)} ${await withReasons(transaction)}`.execute(transaction);
  if (await isDistributed(transaction)) await countPeople(transaction, people, 1);
}

/** Writes locked people anew. By the primary key. */
export async function updatePeople(
  transaction: DatabaseOrTransaction,
  people: readonly PersonRow[],
): Promise<void> {
  if (people.length === 0) return;
  await forTenantParts(transaction, [people], (part) =>
    sql`${PREPARED}
      update people p
      set id = f.id, email = f.email, phone = f.phone, attributes = f.attributes, unsubscribed = f.unsubscribed,
          attributes_at = f.attributes_at, attribute_places = f.attribute_places, updated_at = f.updated_at
      from ${fullRows(part.only(people))}
      where p.environment_id = f.environment_id and p.person_id = f.person_id and ${part.isOf('p')}`.execute(
      transaction,
    ),
  );
}

/**
 * Deletes locked people with their devices, relationships and segments; messages keep no person. Their history and
 * their identifiers are not touched. By the primary keys and, for the last two, `segment_members_by_person` and
 * `message_deliveries_by_person`.
 */
export async function deletePeople(
  transaction: DatabaseOrTransaction,
  keys: readonly PersonKey[],
): Promise<void> {
  if (keys.length === 0) return;
  await forTenantParts(transaction, [keys], (part) => {
    // Each has the keys: Citus would send a list that they share to every node, also to one that is away.
    const gone = keyRows(part.only(keys));
    return sql`
      with deleted_devices as (
        delete from devices d using ${gone}
        where d.environment_id = k.environment_id and d.person_id = k.person_id and ${part.isOf('d')}),
      deleted_relationships as (
        delete from relationships r using ${gone}
        where r.environment_id = k.environment_id and r.person_id = k.person_id and ${part.isOf('r')}),
      deleted_members as (
        delete from segment_members m using ${gone}
        where m.environment_id = k.environment_id and m.person_id = k.person_id and ${part.isOf('m')}),
      freed_messages as (
        update message_deliveries m set person_id = null from ${gone}
        where m.environment_id = k.environment_id and m.person_id = k.person_id and ${part.isOf('m')})
      delete from people p using ${gone}
      where p.environment_id = k.environment_id and p.person_id = k.person_id and ${part.isOf('p')}`.execute(
      transaction,
    );
  });
  if (await isDistributed(transaction)) await countPeople(transaction, keys, -1);
}

/** Sessions that write at the same time hardly ever share one of so many rows of a workspace. */
const COUNT_SLOTS = 256;

/**
 * Adds to the counts of workspaces, in the order of their numbers, like the triggers of
 * `migrations/0027_people_counts.ts`, in one statement. A session adds to its own row of a workspace. By the primary
 * key.
 */
async function countPeople(
  transaction: DatabaseOrTransaction,
  changed: readonly PersonKey[],
  each: 1 | -1,
): Promise<void> {
  await sql`
    insert into people_counts (environment_id, slot, people)
    select environment_id, pg_backend_pid() % ${COUNT_SLOTS}, count(*) * ${each}::int
      from unnest(${integerColumn(changed, (key) => key.environmentId)}::int[]) as c (environment_id)
     group by environment_id order by environment_id
    on conflict (environment_id, slot) do update set people = people_counts.people + excluded.people`.execute(
    transaction,
  );
}

/**
 * Gives the identifiers, messages and recent events of merged people to the people they were merged into. By
 * `person_identifiers_by_person`, `message_deliveries_by_person` and `events_by_person`; the oldest time that any move
 * asks for leaves out the partitions before it.
 *
 * @param moves - `toPersonId` is final: it is never also a `fromPersonId`.
 */
export async function movePeople(
  transaction: DatabaseOrTransaction,
  moves: readonly PersonMove[],
): Promise<void> {
  if (moves.length === 0) return;
  const oldest = new Date(Math.min(...moves.map((move) => move.sinceMs)));
  await forTenantParts(transaction, [moves], (part) => {
    // As in `deletePeople`.
    const own = moveRows(part.only(moves));
    return sql`
      with moved_identifiers as (
        update person_identifiers i set person_id = m.to_person_id from ${own}
        where i.environment_id = m.environment_id and i.person_id = m.from_person_id and ${part.isOf('i')}
      ), moved_messages as (
        update message_deliveries d set person_id = m.to_person_id from ${own}
        where d.environment_id = m.environment_id and d.person_id = m.from_person_id and ${part.isOf('d')}
      )
      update events e set person_id = m.to_person_id from ${own}
      where e.environment_id = m.environment_id and e.person_id = m.from_person_id and ${part.isOf('e')}
        and e.occurred_at >= m.since and e.received_at >= m.since and e.received_at >= ${oldest}`.execute(
      transaction,
    );
  });
}

const moveRows = (moves: readonly PersonMove[]) => sql`
  unnest(
    ${integerColumn(moves, (move) => move.environmentId)}::int[],
    ${bigintColumn(moves, (move) => move.fromPersonId)}::bigint[],
    ${bigintColumn(moves, (move) => move.toPersonId)}::bigint[],
    ${timestampColumn(moves, (move) => move.sinceMs)}::timestamptz[]
  ) as m (environment_id, from_person_id, to_person_id, since)`;

const keyRows = (keys: readonly PersonKey[]) => sql`
  unnest(
    ${integerColumn(keys, (key) => key.environmentId)}::int[],
    ${bigintColumn(keys, (key) => key.personId)}::bigint[]
  ) as k (environment_id, person_id)`;

const fullRows = (people: readonly PersonRow[]) => sql`
  unnest(
    ${integerColumn(people, (person) => person.environmentId)}::int[],
    ${bigintColumn(people, (person) => person.personId)}::bigint[],
    ${textColumn(people, (person) => person.id)}::text[],
    ${textColumn(people, (person) => person.email)}::text[],
    ${textColumn(people, (person) => person.phone)}::text[],
    ${jsonColumn(people, (person) => person.attributes)}::jsonb[],
    ${booleanColumn(people, (person) => person.unsubscribed)}::boolean[],
    ${timestampColumn(people, (person) => person.attributesAtMs)}::timestamptz[],
    ${jsonColumn(people, (person) => person.attributePlaces)}::jsonb[],
    ${timestampColumn(people, (person) => person.createdAtMs)}::timestamptz[],
    ${timestampColumn(people, (person) => person.updatedAtMs)}::timestamptz[]
  ) as f (environment_id, person_id, id, email, phone, attributes, unsubscribed, attributes_at, attribute_places, created_at, updated_at)`;
