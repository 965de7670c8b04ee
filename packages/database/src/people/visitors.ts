/**
 * Stored state of anonymous visitors. A transaction that writes a row holds the visitor's anonymous id.
 *
 * A visitor has one row. It stands in the partition of the week of its last write. So rows are deleted by partition,
 * except a row that moves to another one.
 */
import type {
  NewestVisitorPlace,
  RowChanges,
  VisitorKey,
  VisitorRow,
  VisitorRowKey,
} from '@sluice/domain/state/loaded-state';
import type { NamedObjects } from '@sluice/domain/state/state-needs';
import type { VisitorProfile } from '@sluice/domain/state/visitor-profile';
import { sql } from 'kysely';
import { integerColumn, jsonColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type Database, type DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts } from '../connection/tenant-statements.ts';
import { foundObjects, namesOfObject, type FoundObject } from './objects.ts';
import type { OwnedName } from './person-names.ts';

interface StoredVisitor extends VisitorKey {
  readonly week: string;
  readonly newestPlace: string | null;
  readonly profile: VisitorProfile;
}

/** The existing visitors among the named ones. By the primary key, with a look-up in each partition. */
export async function listVisitors(
  database: DatabaseOrTransaction,
  keys: readonly VisitorKey[],
): Promise<VisitorRow[]> {
  if (keys.length === 0) return [];
  return inTenantParts(database, [keys], async (part) => {
    const { rows } = await sql<StoredVisitor>`${PREPARED}
      select v.environment_id as "environmentId", v.anonymous_id as "anonymousId", v.week::text,
             v.newest_place as "newestPlace", v.profile
        from ${keyRows(part.only(keys))} join visitors v using (environment_id, anonymous_id)
       where ${part.isOf('v')}`.execute(database);
    return rows;
  });
}

/** Both names of the objects to which the visitors will relate somebody. By the primary keys. */
export async function listObjectsOfVisitors(
  database: DatabaseOrTransaction,
  keys: readonly VisitorKey[],
): Promise<OwnedName[]> {
  if (keys.length === 0) return [];
  const found = await inTenantParts(database, [keys], async (part) => {
    const { rows } = await sql<FoundObject>`
      select o.environment_id as "environmentId", o.object_number as "objectNumber",
             o.object_type_id as "objectTypeId", o.object_id as "objectId"
        from ${keyRows(part.only(keys))} join visitors v using (environment_id, anonymous_id),
             lateral jsonb_object_keys(v.profile -> 'relationships') as n (object_number)
        join objects o on o.object_number = n.object_number::bigint
       where o.environment_id = v.environment_id and ${part.isOf('o')} and ${part.isOf('v')}`.execute(
      database,
    );
    return rows;
  });
  return found.flatMap(namesOfObject);
}

/**
 * The visitors who will relate somebody to an object. By the keys of objects and `visitors_by_object`.
 *
 * @param limit - of visitors; further ones are left out.
 */
export async function listVisitorsOfObjects(
  database: DatabaseOrTransaction,
  named: NamedObjects,
  limit: number,
): Promise<VisitorKey[]> {
  const { objectNames, objects } = named;
  if (objectNames.length === 0 && objects.length === 0) return [];
  return inTenantParts(database, [objectNames, objects], async (part) => {
    const { rows } = await sql<VisitorKey>`
      with o as (${foundObjects(part, named)})
      select v.environment_id as "environmentId", v.anonymous_id as "anonymousId"
        from o join visitors v
          on v.environment_id = o."environmentId" and v.profile -> 'relationships' ? o."objectNumber"::text
       where v.profile -> 'relationships' <> '{}' and ${part.isOf('v')}
       limit ${limit}`.execute(database);
    return rows;
  });
}

/** The last write of an attribute by a visitor of each workspace that has one. By `visitors_by_place`. */
export async function listNewestVisitorPlaces(
  database: DatabaseOrTransaction,
  environmentIds: readonly number[],
): Promise<NewestVisitorPlace[]> {
  if (environmentIds.length === 0) return [];
  const tenants = environmentIds.map((environmentId) => ({ environmentId }));
  return inTenantParts(database, [tenants], async (part) => {
    const ids = integerColumn(part.only(tenants), (tenant) => tenant.environmentId);
    const { rows } = await sql<NewestVisitorPlace>`${PREPARED}
      select e.environment_id as "environmentId", newest.place
        from unnest(${ids}::int[]) as e (environment_id),
        lateral (
          select v.newest_place as place from visitors v
           where v.environment_id = e.environment_id and v.newest_place is not null and ${part.isOf('v')}
           order by v.newest_place desc limit 1
        ) newest`.execute(database);
    return rows;
  });
}

/** Writes the changes of visitors. By the primary key, in the partition of the row's week alone. */
export async function writeVisitors(
  transaction: DatabaseOrTransaction,
  { inserted, updated, deleted }: RowChanges<VisitorRow, VisitorRowKey>,
): Promise<void> {
  if (deleted.length > 0) {
    await forTenantParts(transaction, [deleted], (part) => {
      const own = part.only(deleted);
      return sql`${PREPARED}
        delete from visitors v using unnest(
          ${integerColumn(own, (row) => row.environmentId)}::int[],
          ${textColumn(own, (row) => row.anonymousId)}::text[],
          ${own.map((row) => row.week)}::date[]
        ) as k (environment_id, anonymous_id, week)
        where v.environment_id = k.environment_id and v.anonymous_id = k.anonymous_id
          and v.week = k.week and ${part.isOf('v')}`.execute(transaction);
    });
  }
  const kept = [...inserted, ...updated];
  if (kept.length > 0) {
    await sql`${PREPARED}
      insert into visitors (environment_id, anonymous_id, week, newest_place, profile)
      select f.environment_id, f.anonymous_id, f.week, f.newest_place, f.profile from unnest(
        ${integerColumn(kept, (row) => row.environmentId)}::int[],
        ${textColumn(kept, (row) => row.anonymousId)}::text[],
        ${kept.map((row) => row.week)}::date[],
        ${textColumn(kept, (row) => row.newestPlace)}::text[],
        ${jsonColumn(kept, (row) => row.profile)}::jsonb[]
      ) as f (environment_id, anonymous_id, week, newest_place, profile)
      on conflict (environment_id, anonymous_id, week)
        do update set newest_place = excluded.newest_place, profile = excluded.profile`.execute(
      transaction,
    );
  }
}

/** Makes the partitions of the week of `today` and of those after it. May be called by several at once. */
export async function makeVisitorPartitions(
  database: DatabaseOrTransaction,
  today: Date,
  weekCount: number,
): Promise<number> {
  const { rows } = await sql<{ made: number }>`
    select make_visitor_partitions(${dayOf(today)}::date, ${weekCount}::int) as made`.execute(
    database,
  );
  return rows[0]?.made ?? 0;
}

const WEEK_MS = 7 * 86_400_000;
const LOCK_NOT_AVAILABLE = '55P03';
const UNDEFINED_TABLE = '42P01';

/**
 * Drops the weeks that ended more than `keptMs` ago. May be called by several at once; a partition whose lock cannot be
 * had soon is dropped the next time.
 *
 * @returns names of partitions.
 */
export async function dropOldVisitors(
  database: Database,
  today: Date,
  keptMs: number,
): Promise<string[]> {
  const firstKept = dayOf(new Date(today.getTime() - keptMs - WEEK_MS));
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'visitors'::regclass order by 1`.execute(database);
  const dropped: string[] = [];
  for (const { name } of rows) {
    const [, year, month, day] = /_(\d{4})_(\d\d)_(\d\d)$/.exec(name) ?? [];
    if (year === undefined || `${year}-${month}-${day}` >= firstKept) continue;
    if (!(await dropPartition(database, name))) break;
    dropped.push(name);
  }
  // Rows of weeks without a partition: deleted one by one, as an exception.
  await sql`delete from visitors_default where week < ${firstKept}::date`.execute(database);
  return dropped;
}

async function dropPartition(database: Database, name: string): Promise<boolean> {
  try {
    await database.transaction().execute(async (transaction) => {
      await sql`set local lock_timeout = '2s'`.execute(transaction);
      await sql`select drop_visitor_partition(${name})`.execute(transaction);
    });
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === LOCK_NOT_AVAILABLE || code === UNDEFINED_TABLE) return false;
    throw error;
  }
}

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

const keyRows = (keys: readonly VisitorKey[]) => sql`
  unnest(
    ${integerColumn(keys, (key) => key.environmentId)}::int[],
    ${textColumn(keys, (key) => key.anonymousId)}::text[]
  ) as k (environment_id, anonymous_id)`;
