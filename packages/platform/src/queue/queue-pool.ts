/** The connections of the queues in Postgres: one pool for all queues of a process. */
import pg from 'pg';
import { connectionWarnings } from '../redis/connection-warnings.ts';
import { KEEP_ALIVE } from '../redis/keep-alive.ts';
import type { Durability } from '../redis/redis-durability.ts';
import { BULLMQ_SCHEMA } from './queue-tables.ts';
import type { BrokerOptions } from './broker-options.ts';

export interface QueuePoolOptions {
  /** Connections that are kept to hear of new jobs. */
  readonly listenerCount: number;
  /** A Postgres that hangs is an error after so long. Absent: it is waited for. */
  readonly timeoutMs?: number | undefined;
  /** Time to set the schema of a new connection. By default ten seconds, or `timeoutMs` if that is less. */
  readonly schemaMsMax?: number;
}

const SCHEMA_MS_MAX = 10_000;

export function openQueuePool(
  {
    databaseUrl,
    applicationName,
    logger,
  }: Pick<BrokerOptions, 'databaseUrl' | 'applicationName' | 'logger'>,
  { listenerCount, timeoutMs, schemaMsMax = SCHEMA_MS_MAX }: QueuePoolOptions,
): pg.Pool {
  const schema = {
    text: `set search_path = ${BULLMQ_SCHEMA}`,
    // A pooler whose Postgres is away accepts clients and stays silent: the connection would keep its place in the
    // pool. The pool ends a connection of which this fails. `pg` has it for one query; its types leave it out.
    query_timeout: Math.min(schemaMsMax, timeoutMs ?? Infinity),
  };
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    // Beside the process' other connections in `pg_stat_activity`.
    ...(applicationName !== undefined && { application_name: `${applicationName}-queues` }),
    // Once connected, since poolers refuse connections that begin with it.
    onConnect: (client) => client.query(schema) as unknown as void,
    max: listenerCount + 8,
    ...KEEP_ALIVE,
    ...(timeoutMs === undefined
      ? {}
      : { query_timeout: timeoutMs, connectionTimeoutMillis: timeoutMs }),
  });
  // BullMQ adds a listener for each queue and worker that shares it; from the eleventh on Node warns.
  pool.setMaxListeners(0);
  // Without it, a connection that breaks between two statements ends the process.
  pool.on('connect', (client) => void client.on('error', () => {}));
  const warnOfConnection = connectionWarnings(logger);
  pool.on('error', (error) => warnOfConnection(error));
  return pool;
}

/** Durability of a 200 if the queues are in Postgres, by the settings of a session like the adding ones. */
export async function readPostgresDurability(pool: pg.Pool): Promise<Durability> {
  const { rows } = await pool.query<{ fsync: string; commit: string }>(
    `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`,
  );
  const [found] = rows;
  const isSafe = found?.fsync === 'on' && found.commit !== 'off';
  const cost = isSafe ? 'acknowledged calls are on disk' : 'a crash can lose acknowledged calls';
  return {
    isSafe,
    isSaidUnsafe: !isSafe,
    description: `postgres: fsync=${found?.fsync} synchronous_commit=${found?.commit}: ${cost}`,
  };
}
