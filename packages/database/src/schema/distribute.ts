/**
 * Puts the tables of `table-places.ts` on the nodes of Citus. It goes table by table, and leaves distributed tables
 * alone. If it is run again, it goes on after the last finished table; after a migration it adds the new tables.
 */
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { isDistributed } from '../connection/tenant-statements.ts';
import { DISTRIBUTED_TABLES } from './table-places.ts';

/** The first on which the tests ran. */
const CITUS_VERSION_MIN = 13;

/**
 * Of rows that come and go many nodes keep no count by a trigger over the whole statement: `people/people.ts` counts instead.
 * `audit_logs` and `credit_entries` keep theirs: they stay on the coordinator.
 */
const TRIGGERS_OF_PEOPLE = ['people_inserted', 'people_deleted', 'people_truncated'] as const;

/**
 * Distributes the tables that are not distributed yet. Stop all writers before: each table is locked while its rows are
 * copied to the nodes.
 *
 * @param onBegin - called with each table before it is distributed.
 * @returns the tables that were distributed now; on a Postgres without the extension the list is empty.
 */
export async function distribute(
  database: Database,
  onBegin: (table: string) => void = () => {},
): Promise<string[]> {
  if (!(await isDistributed(database))) return [];
  const done = await listDistributed(database);
  // Of a run that was stopped.
  await removeLocalCopies(
    database,
    DISTRIBUTED_TABLES.filter((table) => done.has(table)),
  );
  const missing = DISTRIBUTED_TABLES.filter((table) => !done.has(table));
  for (const table of missing) {
    onBegin(table);
    await distributeTable(database, table);
    await removeLocalCopies(database, [table]);
  }
  return missing;
}

async function distributeTable(database: Database, table: string): Promise<void> {
  const first = DISTRIBUTED_TABLES[0];
  await database.transaction().execute(async (transaction) => {
    if (table === 'people')
      for (const trigger of TRIGGERS_OF_PEOPLE)
        await sql`drop trigger if exists ${sql.ref(trigger)} on people`.execute(transaction);
    await sql`
      select create_distributed_table(${table}, 'environment_id', colocate_with => ${table === first ? 'none' : first})`.execute(
      transaction,
    );
  });
}

/** The coordinator's own copies of distributed tables, and of their partitions, are not read any more. */
async function removeLocalCopies(
  database: Database,
  distributed: readonly string[],
): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${[...distributed]}::text[]) as t (name)
     where pg_relation_size(name::regclass) > 0
        or exists (select from pg_partition_tree(name::regclass) where pg_relation_size(relid) > 0)`.execute(
    database,
  );
  for (const { name } of rows)
    await sql`select truncate_local_data_after_distributing_table(${name})`.execute(database);
}

async function listDistributed(database: DatabaseOrTransaction): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select logicalrelid::text as name from pg_dist_partition where partmethod = 'h'`.execute(
    database,
  );
  return new Set(rows.map(({ name }) => name));
}

/**
 * Before anything is changed: a Postgres, or the coordinator of a Citus that is new enough.
 *
 * @throws AppError CONFIG_INVALID
 */
export async function requireCoordinator(database: DatabaseOrTransaction): Promise<void> {
  if (!(await isDistributed(database))) return;
  const { rows } = await sql<{ version: string; isCoordinator: boolean }>`
    select extversion as version, citus_is_coordinator() as "isCoordinator"
      from pg_extension where extname = 'citus'`.execute(database);
  const { version = '', isCoordinator } = rows[0] ?? {};
  if (Number.parseInt(version, 10) < CITUS_VERSION_MIN)
    throw new AppError(
      'CONFIG_INVALID',
      `this database has Citus ${version}, and Sluice needs ${CITUS_VERSION_MIN} or newer; upgrade Citus, then start again`,
    );
  if (isCoordinator !== true)
    throw new AppError(
      'CONFIG_INVALID',
      'DATABASE_URL names a node of Citus that is not its coordinator; name the coordinator',
    );
}

/** Since this version Citus passes a grant of columns on to the nodes. Older ones refuse it on a distributed table (0A000). */
const COLUMN_GRANTS_SINCE = 13.1;

/** Tables on which a role can only be given a right to all columns. Empty on Postgres without Citus. */
export async function listTablesWithoutColumnGrants(
  database: DatabaseOrTransaction,
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ version: string }>`
    select extversion as version from pg_extension where extname = 'citus'`.execute(database);
  const [citus] = rows;
  const isOlder = citus !== undefined && Number.parseFloat(citus.version) < COLUMN_GRANTS_SINCE;
  return new Set(isOlder ? DISTRIBUTED_TABLES : []);
}
