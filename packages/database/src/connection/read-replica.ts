/**
 * A streaming replica for reads: its position, and a database that falls back to the primary.
 *
 * The lag of a replica is measured by positions in the primary's write-ahead log, not by times: the primary's position
 * at a moment that we know by our own clock, and the position up to which the replica has applied it. So an idle
 * primary does not look like a replica that lags, and no clock needs to agree with another.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
} from 'kysely';
import { answeredWithin, type Database } from './connection.ts';
import { isCancelled } from './statement-failure.ts';

/** Two servers are copies of each other if both ids are equal. */
export interface LogPosition {
  /** Of the cluster that `initdb` made; a physical copy keeps it. */
  readonly clusterId: string;
  /** Of the database within it. */
  readonly databaseId: string;
  /**
   * Of the log that the primary writes, or that the replica has applied. Each promotion begins one. Positions of two
   * timelines cannot be compared: a replica can have changes of the former primary that the new one never had.
   */
  readonly timeline: number;
  /** Bytes from the beginning of the log. Undefined if the server applies no log: it is not a physical replica. */
  readonly position: bigint | undefined;
}

const ANSWER_MS_MAX = 2_000;

/**
 * All that was committed and confirmed before the call stands before this position.
 *
 * @throws Error if the server does not answer within two seconds, or is a replica itself.
 */
export const readPrimaryPosition = (primary: Database): Promise<LogPosition> =>
  readPosition(
    primary,
    sql.raw('pg_current_wal_lsn()'),
    sql.raw(`('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int`),
  );

/**
 * Statements that are begun after the answer see all that stands before this position. After a promotion the timeline
 * changes late, with a restart point or a page that the replica writes to disk.
 */
export const readReplicaPosition = (replica: Database): Promise<LogPosition> =>
  readPosition(
    replica,
    sql.raw('pg_last_wal_replay_lsn()'),
    sql.raw(
      `(select greatest(timeline_id, min_recovery_end_timeline) from pg_control_checkpoint(), pg_control_recovery())`,
    ),
  );

async function readPosition(
  database: Database,
  position: ReturnType<typeof sql.raw>,
  timeline: ReturnType<typeof sql.raw>,
): Promise<LogPosition> {
  const { rows } = await sql<{
    clusterId: string;
    databaseId: string;
    timeline: number;
    position: string | null;
  }>`${answeredWithin(ANSWER_MS_MAX)}
    select (select system_identifier::text from pg_control_system()) as "clusterId",
           (select oid::text from pg_database where datname = current_database()) as "databaseId",
           ${timeline} as timeline,
           pg_wal_lsn_diff(${position}, '0/0')::text as position`.execute(database);
  const [found] = rows;
  if (!found) throw new Error('Postgres returned no row for its position');
  return { ...found, position: found.position === null ? undefined : BigInt(found.position) };
}

/**
 * Statements run on `replica`, and once more on `primary` if that fails. The replica may be away, may end the statement
 * because of a conflict with the log that it applies, or may lack a column that a migration has just added. One that
 * took too long is not repeated. For statements that only read; there are no transactions.
 *
 * @param onFallback - called on each failure of the replica.
 */
export function createFallingBackDatabase(
  primary: Database,
  replica: Database,
  onFallback: (error: unknown) => void,
): Database {
  const connection: DatabaseConnection = {
    async executeQuery(query: CompiledQuery) {
      try {
        return (await replica.executeQuery(query)) as never;
      } catch (error) {
        if (isCancelled(error)) throw error;
        onFallback(error);
        return (await primary.executeQuery(query)) as never;
      }
    },
    streamQuery() {
      throw new Error('reads of a replica are not streamed');
    },
  };
  const refuse = (): never => {
    throw new Error('a replica takes no transactions');
  };
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    beginTransaction: async () => refuse(),
    commitTransaction: async () => refuse(),
    rollbackTransaction: async () => refuse(),
    destroy: () => replica.destroy(),
  };
  return new Kysely({
    dialect: {
      createDriver: () => driver,
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: (database) => new PostgresIntrospector(database),
    },
  });
}
