/**
 * Identifiers of people. A transaction that works on one holds its row until it ends; events that only ask for its
 * person read it behind the gate of merges (`merge-gate.ts`).
 *
 * Locks are taken in the order of the primary key, before the locks of people and objects, so that commit batches of
 * different shards hardly ever deadlock; one that does is tried again. When two make the same new identifier at once,
 * it is a unique violation for the second, which starts again and finds it.
 */
import type { StoredIdentifierKind } from '@sluice/domain/operations/state-keys';
import type {
  IdentifierKey,
  IdentifierRow,
  PersonKey,
  RowChanges,
} from '@sluice/domain/state/loaded-state';
import { sql, type RawBuilder } from 'kysely';
import { bigintColumn, booleanColumn, integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts, withReasons } from '../connection/tenant-statements.ts';

interface StoredIdentifier {
  readonly environmentId: number;
  readonly kind: StoredIdentifierKind;
  readonly value: string;
  /** int8, in decimal digits. */
  readonly personId: string | null;
  readonly suppressed: boolean;
}

/** Locks the identifiers that exist of those named. By the primary key, a look-up each. */
export function lockIdentifiers(
  transaction: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
): Promise<IdentifierRow[]> {
  return selectIdentifiers(transaction, keys, sql`for update of i`);
}

/**
 * Keeps off other transactions that name these identifiers here until this one ends. It also works for identifiers
 * without a person, which have no row to lock. In order, and before all row locks.
 */
export async function holdNames(
  transaction: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
): Promise<void> {
  if (keys.length === 0) return;
  await sql`
    select pg_advisory_xact_lock(name) from (
      select distinct hashtextextended(k.environment_id || ' ' || k.kind || ' ' || k.value, 3) as name
      from ${keyRows(keys)} order by name
    ) names`.execute(transaction);
}

/** The identifiers that exist of those named, as they are now. By the primary key, a look-up each. */
export function listIdentifiers(
  database: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
): Promise<IdentifierRow[]> {
  return selectIdentifiers(database, keys, sql``);
}

async function selectIdentifiers(
  database: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
  lock: RawBuilder<unknown>,
): Promise<IdentifierRow[]> {
  if (keys.length === 0) return [];
  const rows = await inTenantParts(database, [keys], async (part) => {
    const found = await sql<StoredIdentifier>`${PREPARED}
      select i.environment_id as "environmentId", i.kind, i.value, i.person_id as "personId", i.suppressed
      from ${keyRows(part.only(keys))}
      join person_identifiers i using (environment_id, kind, value)
      where ${part.isOf('i')}
      order by i.environment_id, i.kind, i.value
      ${lock}`.execute(database);
    return found.rows;
  });
  return rows.map((row) => ({
    ...row,
    personId: row.personId === null ? null : Number(row.personId),
  }));
}

/**
 * All identifiers of the people named, by an identifier or by number, without locking. They are the rows to lock if any
 * of them may be given up. By the primary key, then `person_identifiers_by_person`.
 */
export async function listIdentifiersOf(
  database: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
  people: readonly PersonKey[],
): Promise<IdentifierKey[]> {
  return inTenantParts(database, [keys, people], async (part) => {
    const { rows } = await sql<IdentifierKey>`
      with named as (
        select i.environment_id, i.person_id
        from ${keyRows(part.only(keys))} join person_identifiers i using (environment_id, kind, value)
        where ${part.isOf('i')}
        union
        select * from ${personRows(part.only(people))}
      )
      select i.environment_id as "environmentId", i.kind, i.value
      from named join person_identifiers i using (environment_id, person_id)
      where ${part.isOf('i')}`.execute(database);
    return rows;
  });
}

/** Frees identifiers. By the primary key. */
export async function deleteIdentifiers(
  transaction: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
): Promise<void> {
  if (keys.length === 0) return;
  await forTenantParts(transaction, [keys], (part) =>
    sql`
      delete from person_identifiers i using ${keyRows(part.only(keys))}
      where i.environment_id = k.environment_id and i.kind = k.kind and i.value = k.value and ${part.isOf('i')}`.execute(
      transaction,
    ),
  );
}

/** Writes identifiers. `updated` are locked, or their person is; their rows may be gone meanwhile. By the primary key. */
export async function writeIdentifiers(
  transaction: DatabaseOrTransaction,
  { inserted, updated }: Pick<RowChanges<IdentifierRow, IdentifierKey>, 'inserted' | 'updated'>,
): Promise<void> {
  if (updated.length > 0) {
    await sql`${PREPARED}
      insert into person_identifiers (environment_id, kind, value, person_id, suppressed)
      select * from ${fullRows(updated)} order by environment_id, kind collate "C", value collate "C"
      on conflict (environment_id, kind, value)
        do update set person_id = excluded.person_id, suppressed = excluded.suppressed`.execute(
      transaction,
    );
  }
  if (inserted.length > 0) {
    await sql`${PREPARED}
      insert into person_identifiers (environment_id, kind, value, person_id, suppressed)
      select * from ${fullRows(inserted)} order by environment_id, kind collate "C", value collate "C"
      ${await withReasons(transaction)}`.execute(transaction);
  }
}

/** Blocks all identifiers of people. By `person_identifiers_by_person`. */
export async function suppressIdentifiersOf(
  transaction: DatabaseOrTransaction,
  people: readonly PersonKey[],
): Promise<void> {
  if (people.length === 0) return;
  await forTenantParts(transaction, [people], (part) =>
    sql`
      update person_identifiers i set suppressed = true from ${personRows(part.only(people))}
      where i.environment_id = p.environment_id and i.person_id = p.person_id and ${part.isOf('i')}`.execute(
      transaction,
    ),
  );
}

/** Frees all identifiers of people. By `person_identifiers_by_person`. */
export async function deleteIdentifiersOf(
  transaction: DatabaseOrTransaction,
  people: readonly PersonKey[],
): Promise<void> {
  if (people.length === 0) return;
  await forTenantParts(transaction, [people], (part) =>
    sql`
      delete from person_identifiers i using ${personRows(part.only(people))}
      where i.environment_id = p.environment_id and i.person_id = p.person_id and ${part.isOf('i')}`.execute(
      transaction,
    ),
  );
}

const keyRows = (keys: readonly IdentifierKey[]) => sql`
  unnest(
    ${integerColumn(keys, (key) => key.environmentId)}::int[],
    ${textColumn(keys, (key) => key.kind)}::text[],
    ${textColumn(keys, (key) => key.value)}::text[]
  ) as k (environment_id, kind, value)`;

const personRows = (people: readonly PersonKey[]) => sql`
  unnest(
    ${integerColumn(people, (person) => person.environmentId)}::int[],
    ${bigintColumn(people, (person) => person.personId)}::bigint[]
  ) as p (environment_id, person_id)`;

const fullRows = (rows: readonly IdentifierRow[]) => sql`
  unnest(
    ${integerColumn(rows, (row) => row.environmentId)}::int[],
    ${textColumn(rows, (row) => row.kind)}::text[],
    ${textColumn(rows, (row) => row.value)}::text[],
    ${bigintColumn(rows, (row) => row.personId)}::bigint[],
    ${booleanColumn(rows, (row) => row.suppressed)}::boolean[]
  ) as f (environment_id, kind, value, person_id, suppressed)`;
