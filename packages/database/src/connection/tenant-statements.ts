/**
 * Sends a statement about tenants as Citus can run it.
 *
 * On Citus a statement about one tenant runs, whole, on the one node that has the tenant's rows. One about several is
 * cut into as many as there are shards, 32, and refused if it locks rows or looks rows up one by one. So on Citus such
 * a statement is sent once for each tenant, and on a plain Postgres once for all of them. Only this file knows which of
 * the two a database is.
 */
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

export interface OfTenant {
  readonly environmentId: number;
}

/** The tenants that one statement is about: all of them, or one. */
export interface TenantPart {
  /** The rows of one of the lists that belong to this part. */
  only<Row extends OfTenant>(rows: readonly Row[]): readonly Row[];
  /** A condition on a distributed table, by its name in the statement. */
  isOf(table: string): RawBuilder<boolean>;
}

const ALL_TENANTS: TenantPart = { only: (rows) => rows, isOf: () => sql<boolean>`true` };

/** List → tenant → its rows. */
type RowsByTenant = ReadonlyMap<readonly OfTenant[], ReadonlyMap<number, readonly OfTenant[]>>;

const oneTenant = (environmentId: number, rowsByTenant: RowsByTenant): TenantPart => ({
  only: <Row extends OfTenant>(rows: readonly Row[]) =>
    (rowsByTenant.get(rows)?.get(environmentId) ?? []) as readonly Row[],
  isOf: (table) => sql<boolean>`${sql.ref(`${table}.environment_id`)} = ${environmentId}::int`,
});

/** By Kysely's adapter, which a database and its transactions share. */
const distributed = new WeakMap<object, boolean>();

/** Asks once for each pool, at its first call: a database with the extension `citus` is distributed, or about to be. */
export async function isDistributed(database: DatabaseOrTransaction): Promise<boolean> {
  const { adapter } = database.getExecutor();
  const known = distributed.get(adapter);
  if (known !== undefined) return known;
  const { rows } = await sql<{ isThere: boolean }>`
    select exists (select from pg_extension where extname = 'citus') as "isThere"`.execute(
    database,
  );
  const isThere = rows[0]?.isThere === true;
  distributed.set(adapter, isThere);
  return isThere;
}

/**
 * The end of an insert of many rows that may meet an existing row, or a value that no row can hold. Citus copies rows
 * to their nodes, and then reports only that the copy failed (XX000). If rows are to come back, Citus inserts them
 * instead, and the error keeps its SQLSTATE (`statement-failure.ts`).
 */
export async function withReasons(database: DatabaseOrTransaction): Promise<RawBuilder<unknown>> {
  return (await isDistributed(database)) ? sql`returning 1` : sql``;
}

/**
 * Runs a statement for the tenants of some rows: once, or on Citus once for each, in the order of their numbers, in which
 * rows are locked everywhere.
 *
 * @param lists - of rows, each of a tenant; `run` asks for its part of each.
 * @returns the statements' rows, one statement after another.
 */
export async function inTenantParts<Row>(
  database: DatabaseOrTransaction,
  lists: readonly (readonly OfTenant[])[],
  run: (part: TenantPart) => Promise<Row[]>,
): Promise<Row[]> {
  if (!(await isDistributed(database))) return run(ALL_TENANTS);
  const rowsByTenant = new Map(lists.map((rows) => [rows, groupByTenant(rows)]));
  const environmentIds = new Set([...rowsByTenant.values()].flatMap((rows) => [...rows.keys()]));
  const found: Row[] = [];
  for (const environmentId of [...environmentIds].toSorted((one, other) => one - other))
    found.push(...(await run(oneTenant(environmentId, rowsByTenant))));
  return found;
}

/** `inTenantParts` for a statement that returns no rows. */
export async function forTenantParts(
  database: DatabaseOrTransaction,
  lists: readonly (readonly OfTenant[])[],
  run: (part: TenantPart) => Promise<unknown>,
): Promise<void> {
  await inTenantParts(database, lists, async (part) => {
    await run(part);
    return [];
  });
}

function groupByTenant(rows: readonly OfTenant[]): Map<number, OfTenant[]> {
  const groups = new Map<number, OfTenant[]>();
  for (const row of rows) {
    const group = groups.get(row.environmentId);
    if (group) group.push(row);
    else groups.set(row.environmentId, [row]);
  }
  return groups;
}
