/**
 * The door to Postgres: one pool a process, and Kysely over it. Transactions are opened in use
 * cases only; every statement takes the database or the transaction as its first argument.
 */
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import pg from 'pg';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;
export type DatabaseOrTransaction = Kysely<Tables> | Transaction<Tables>;

const PREPARED_TEXT = '/* prepared */';

/**
 * Begins the text of a statement that is to be prepared: parsed and planned once a connection instead of
 * each time, which is half of what a small read costs. For statements that are asked all the time and
 * whose plan does not depend on their values; their texts stay on each connection, so they must be few.
 */
export const PREPARED = sql.raw(PREPARED_TEXT);

/** Text → name. As many as there are such texts in the code. */
const preparedNames = new Map<string, string>();

/** Gives the statements that ask for it a name, which is how `pg` prepares. */
class PreparingClient extends pg.Client {
  override query(...given: unknown[]): never {
    const [text, values] = given;
    const query = super.query.bind(this) as (...all: unknown[]) => never;
    if (typeof text !== 'string' || !text.startsWith(PREPARED_TEXT)) return query(...given);
    let name = preparedNames.get(text);
    if (name === undefined) {
      name = `prepared_${preparedNames.size + 1}`;
      preparedNames.set(text, name);
    }
    return query({ name, text, values });
  }
}

const CONNECT_TIMEOUT_MS = 10_000;

export interface DatabaseOptions {
  readonly url: string;
  /** At most so many connections. */
  readonly poolMax: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /**
   * A transaction that says nothing for so long is ended by Postgres, with its locks: those of a process
   * that hangs would hold up whoever takes its work over. Absent: never.
   */
  readonly idleInTransactionMsMax?: number;
  /** A connection of the pool that is idle broke; it is replaced on next use. */
  readonly onError: (error: Error) => void;
}

/** Opens nothing until first used. Close with `destroy()`. int8 comes back as text, as `pg` gives it. */
export function createDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    Client: PreparingClient,
    max: options.poolMax,
    // A server that drops packets without a word: better an error that is tried again than a wait.
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: options.applicationName,
    keepAlive: true,
    ...(options.idleInTransactionMsMax !== undefined && {
      idle_in_transaction_session_timeout: options.idleInTransactionMsMax,
    }),
  });
  pool.on('error', options.onError);
  // A connection that breaks between two statements of a transaction is in nobody's hands: without a
  // listener its 'error' ends the process. The next statement on it fails and says why.
  pool.on('connect', (client) => void client.on('error', () => {}));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
