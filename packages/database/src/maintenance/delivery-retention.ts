/**
 * The life of the log's and the attempts' days: made ahead, dropped whole when they are old.
 * Rows that a lane or a running replay still needs are never dropped: deliveries that are neither delivered nor given up,
 * attempts beyond the lane's cursor, and rows that the replay has still to look at, with their attempts. If a day has such
 * rows, a copy with only those rows replaces its partition, once; the copy is dropped when no row of it is needed.
 *
 *   delivery_log_2026_10_20 ──old──┬─ no row is needed ─────▶ dropped
 *                                  └─ some are needed ─────▶ delivery_log_2026_10_20_kept ──▶ dropped, later
 * Old rows are not written to and cursors only move on, so a row that is not needed now is never needed again, and the
 * copy blocks no writer; a replay that begins at that very moment finds the remaining rows. Detaching a partition locks
 * its table for a moment; if that lock cannot be had soon, it is tried again the next time.
 *
 * Run by `worker/src/maintenance/keep-delivery-days.ts` every hour, on any number of workers.
 */
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

/** By `webhook_replays_running`, which has only running replays. */
const REPLAYED = sql`
  select from webhook_replays p
   where p.environment_id = r.environment_id and p.webhook_id = r.webhook_id and p.state = 'running'
     and r.sequence > p.cursor_sequence and r.sequence <= p.through_sequence`;

/** Needed by a lane or by a replay: as a condition on a row `r`, found by the primary key of lanes. */
const NEEDED = {
  delivery_log: sql`(exists (
    select from lanes where lanes.environment_id = r.environment_id and lanes.webhook_id = r.webhook_id
       and r.sequence > lanes.cursor_sequence) or exists (${REPLAYED}))`,
  delivery_attempts: sql`(exists (
    select from lanes where lanes.environment_id = r.environment_id and lanes.webhook_id = r.webhook_id
       and r.sequence > lanes.cursor_sequence and r.sequence <= lanes.attempted_sequence)
    or exists (${REPLAYED} and p.criteria ? 'states'))`,
} as const;

type PartitionedTable = keyof typeof NEEDED;

const LOCK_TIMEOUT = '2s';

/** By its clock, which the days of rows are by. */
export async function findDatabaseTime(database: DatabaseOrTransaction): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(database);
  return (rows[0] as (typeof rows)[number]).at;
}

/**
 * Makes the partitions of `today` and of the days after it that are not there yet. May be called by
 * several at once.
 *
 * @returns how many were made.
 */
export async function makeDeliveryPartitions(
  database: DatabaseOrTransaction,
  today: Date,
  dayCount: number,
): Promise<number> {
  const { rows } = await sql<{ made: number }>`
    select make_delivery_partitions(${dayOf(today)}::date, ${dayCount}::int) as made`.execute(
    database,
  );
  return rows[0]?.made ?? 0;
}

export interface DroppedDays {
  /** Names of partitions. */
  readonly dropped: readonly string[];
  /** Days of which only the needed rows were kept. */
  readonly reduced: readonly string[];
}

/**
 * Drops the days before the last `keptDays` ones, today included. May be called by several at once.
 *
 * @param today - not after the day that rows are written to.
 */
export async function dropOldDeliveries(
  database: Database,
  today: Date,
  keptDays: number,
): Promise<DroppedDays> {
  const dropped: string[] = [];
  const reduced: string[] = [];
  const firstKept = dayOf(new Date(today.getTime() - (keptDays - 1) * 86_400_000));
  for (const table of ['delivery_log', 'delivery_attempts'] as const) {
    for (const partition of await listPartitions(database, table)) {
      if (partition.day >= firstKept) continue;
      const outcome = await dropPartition(database, table, partition);
      if (outcome === 'dropped') dropped.push(partition.name);
      if (outcome === 'reduced') reduced.push(partition.name);
      // A table that is locked now will be for the next partition too.
      if (outcome === 'busy') return { dropped, reduced };
    }
    await clearDefault(database, table, firstKept);
  }
  return { dropped, reduced };
}

interface Partition {
  readonly name: string;
  /** `2026-11-20` */
  readonly day: string;
}

async function listPartitions(
  database: DatabaseOrTransaction,
  table: PartitionedTable,
): Promise<Partition[]> {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits
     where inhparent = ${table}::regclass order by 1`.execute(database);
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = /_(\d{4})_(\d\d)_(\d\d)(?:_kept)?$/.exec(name) ?? [];
    return year === undefined ? [] : [{ name, day: `${year}-${month}-${day}` }];
  });
}

async function dropPartition(
  database: Database,
  table: PartitionedTable,
  partition: Partition,
): Promise<'dropped' | 'reduced' | 'kept' | 'busy'> {
  const name = sql.table(partition.name);
  const { rows } = await sql<{ isNeeded: boolean }>`
    select exists (select from ${name} r where ${NEEDED[table]}) as "isNeeded"`.execute(database);
  const isNeeded = rows[0]?.isNeeded ?? true;
  if (isNeeded && partition.name.endsWith('_kept')) return 'kept';
  const kept = sql.table(`${partition.name}_kept`);
  try {
    return await database.transaction().execute(async (transaction) => {
      await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(transaction);
      const { rows: locked } = await sql<{ isMine: boolean }>`
        select pg_try_advisory_xact_lock(hashtext('delivery_partitions')) as "isMine"`.execute(
        transaction,
      );
      if (!locked[0]?.isMine) return 'busy';
      // Functions of the schema's owner: a worker's login owns no table.
      if (isNeeded) {
        await sql`
          select make_kept_delivery_partition(${table}, ${partition.name}, ${partition.day}::date)`.execute(
          transaction,
        );
        await sql`insert into ${kept} select * from ${name} r where ${NEEDED[table]}`.execute(
          transaction,
        );
      }
      await sql`
        select drop_delivery_partition(${table}, ${partition.name}, ${partition.day}::date, ${isNeeded})`.execute(
        transaction,
      );
      if (!isNeeded) return 'dropped';
      return 'reduced';
    });
  } catch (error) {
    if (isBusy(error)) return 'busy';
    throw error;
  }
}

/** Rows that came on a day without a partition: deleted one by one, as an exception. */
async function clearDefault(
  database: DatabaseOrTransaction,
  table: PartitionedTable,
  firstKept: string,
): Promise<void> {
  await sql`
    delete from ${sql.table(`${table}_default`)} r
     where day < ${firstKept}::date and not ${NEEDED[table]}`.execute(database);
}

const LOCK_NOT_AVAILABLE = '55P03';
const UNDEFINED_TABLE = '42P01';

/** The lock was not to be had, or another worker was faster. */
function isBusy(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === LOCK_NOT_AVAILABLE || code === UNDEFINED_TABLE;
}

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);
