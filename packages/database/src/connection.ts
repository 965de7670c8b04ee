/**
 * The door to Postgres: one pool a process, and Kysely over it. Transactions are opened in use
 * cases only; every statement takes the database or the transaction as its first argument.
 */
import { Kysely, PostgresDialect, type Transaction } from 'kysely';
import pg from 'pg';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;
export type DatabaseOrTransaction = Kysely<Tables> | Transaction<Tables>;

const CONNECT_TIMEOUT_MS = 10_000;

export interface DatabaseOptions {
  readonly url: string;
  /** At most so many connections. */
  readonly poolMax: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** A connection of the pool that is idle broke; it is replaced on next use. */
  readonly onError: (error: Error) => void;
}

/** Opens nothing until first used. Close with `destroy()`. int8 comes back as text, as `pg` gives it. */
export function createDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolMax,
    // A server that drops packets without a word: better an error that is tried again than a wait.
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: options.applicationName,
    keepAlive: true,
  });
  pool.on('error', options.onError);
  // A connection that breaks between two statements of a transaction is in nobody's hands: without a
  // listener its 'error' ends the process. The next statement on it fails and says why.
  pool.on('connect', (client) => void client.on('error', () => {}));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
