/**
 * The door to Postgres: one pool a process, and Kysely over it. Transactions are opened in use
 * cases only; every statement takes the database or the transaction as its first argument.
 */
import type { EventEmitter } from 'node:events';
import { Kysely, PostgresDialect, sql, type Transaction as KyselyTransaction } from 'kysely';
import pg from 'pg';
import { ConnectionWatch, type WatchedConnection } from './connection-watch.ts';

/** Kysely knows no tables: every statement is SQL and says itself what its rows are (docs/design.md). */
export type Database = Kysely<unknown>;
export type Transaction = KyselyTransaction<unknown>;
export type DatabaseOrTransaction = Database | Transaction;

const PREPARED_TEXT = '/* prepared */';

/**
 * Begins the text of a statement that is to be prepared: parsed and planned once a connection instead of
 * each time, which is half of what a small read costs. For statements that are asked all the time and
 * whose plan does not depend on their values; their texts stay on each connection, so they must be few.
 */
export const PREPARED = sql.raw(PREPARED_TEXT);

/** Text → name. As many as there are such texts in the code. */
const preparedNames = new Map<string, string>();

const WITHIN_TEXT = /^\/\* within (\d+) ms \*\//;

/**
 * Begins the text of a statement whose answer is worth nothing after so long: its connection is ended then, so
 * that it does not go on holding a place in the pool. For questions that a Postgres which is there answers at
 * once. It is Postgres that goes on with a statement that it has; one that may wait there for a lock wants
 * `statementMsMax` instead.
 */
export const answeredWithin = (durationMs: number) => sql.raw(`/* within ${durationMs} ms */`);

/** Gives the statements that ask for it a name, which is how `pg` prepares, and those that have one their deadline. */
class PreparingClient extends pg.Client implements WatchedConnection {
  /** `pg` sets it; its types leave it out. */
  declare readonly processID: number | null;
  busySinceMs: number | undefined = undefined;
  /** Of every statement that does not name its own. */
  readonly answerMsMax: number | undefined = undefined;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('drain', () => (this.busySinceMs = undefined));
  }

  override query(...given: unknown[]): never {
    const [text, values] = given;
    // Until it says 'drain', which is that nothing is under way any more.
    this.busySinceMs ??= performance.now();
    const query = super.query.bind(this) as (...all: unknown[]) => never;
    if (typeof text !== 'string') return query(...given);
    const answer = text.startsWith(PREPARED_TEXT)
      ? query({ name: nameOf(text), text, values })
      : query(...given);
    const own = WITHIN_TEXT.exec(text)?.[1];
    const msMax = own === undefined ? this.answerMsMax : Number(own);
    return msMax === undefined ? answer : (this.#endUnlessAnswered(answer, msMax) as never);
  }

  /**
   * Where packets are dropped nobody tells this end: TCP sends what was not confirmed again for a quarter of an
   * hour. `pg`'s own `query_timeout` gives up the answer and keeps the connection, and the next statement would
   * wait behind this one; `end()` closes the socket of a client whose statement is under way, without a goodbye.
   */
  async #endUnlessAnswered(answer: Promise<unknown>, msMax: number): Promise<unknown> {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      void this.end();
    }, msMax);
    try {
      return await answer;
    } catch (error) {
      if (!isLate) throw error;
      throw new Error(`Connection terminated: Postgres did not answer in ${msMax} ms`, {
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

function nameOf(text: string): string {
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = `prepared_${preparedNames.size + 1}`;
    preparedNames.set(text, name);
  }
  return name;
}

const CONNECT_TIMEOUT_MS = 10_000;
/**
 * A connection on which nothing has come for so long is asked for a sign of life by the system, and is ended where
 * ten questions, a second apart, stay without one. That is for statements of any length, which wait for as long as
 * the other end is there; the system's own is two hours. It says nothing while bytes of ours are unconfirmed:
 * then TCP has its own patience, `net.ipv4.tcp_retries2`, which Node has no way to shorten (TCP_USER_TIMEOUT), and
 * `connection-watch.ts` ends the connection.
 */
const KEEP_ALIVE_AFTER_MS = 30_000;
/** Longer than nearly all statements take, so that next to never is one asked about. */
const LATE_AFTER_MS = 10_000;
const READ_ONLY_SQLSTATE = '25006';
/** Of the time for an answer: Postgres gives up first, and says so. */
const SHARE_OF_POSTGRES = 0.8;

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
  /**
   * For processes whose statements are all short: none is waited for longer, and no connection. Postgres ends a
   * statement a little earlier; where not even that is heard the connection is ended, and the next statement opens
   * another one. Absent: a statement takes as long as Postgres is at work on it.
   */
  readonly statementMsMax?: number;
  /** A statement that takes longer is asked about (`connection-watch.ts`). Absent: ten seconds. */
  readonly lateAfterMs?: number;
  /** A connection of the pool that is idle broke; it is replaced on next use. */
  readonly onError: (error: Error) => void;
}

/** Opens nothing until first used. Close with `destroy()`. int8 comes back as text, as `pg` gives it. */
export function createDatabase(options: DatabaseOptions): Database {
  const { statementMsMax } = options;
  const pool = new pg.Pool({
    connectionString: options.url,
    Client: class extends PreparingClient {
      override readonly answerMsMax = statementMsMax;
    },
    max: options.poolMax,
    // A server that drops packets without a word: better an error that is tried again than a wait.
    connectionTimeoutMillis: Math.min(CONNECT_TIMEOUT_MS, statementMsMax ?? CONNECT_TIMEOUT_MS),
    application_name: options.applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    ...(options.idleInTransactionMsMax !== undefined && {
      idle_in_transaction_session_timeout: options.idleInTransactionMsMax,
    }),
    ...(statementMsMax !== undefined && {
      // Said once connected, since poolers refuse connections that begin with it.
      onConnect: (client) =>
        client.query(
          `set statement_timeout = ${Math.floor(statementMsMax * SHARE_OF_POSTGRES)}`,
        ) as unknown as void,
    }),
  });
  pool.on('error', options.onError);
  // A connection that breaks between two statements of a transaction is in nobody's hands: without a
  // listener its 'error' ends the process. The next statement on it fails and says why.
  pool.on('connect', (client) => void client.on('error', () => {}));
  endWhereReadOnly(pool);
  const { url, applicationName, lateAfterMs = LATE_AFTER_MS } = options;
  const watch = new ConnectionWatch({ url, applicationName, lateAfterMs });
  pool.on('connect', (client) => {
    watch.add(client as unknown as PreparingClient);
  });
  pool.on('remove', (client) => watch.remove(client as unknown as PreparingClient));
  return new Kysely({ dialect: new PostgresDialect({ pool }) });
}

/**
 * A server that takes no writes is not the primary any more. After a failover by name or by a proxy its connections may
 * stay open, and a busy pool would keep them for ever: they are ended, so that the next one is opened to whoever is
 * primary by then. The queues' pool needs none of it: `pool.query` leaves every connection on which a statement failed.
 */
function endWhereReadOnly(pool: pg.Pool): void {
  const readOnly = new WeakSet<pg.PoolClient>();
  pool.on('connect', (client) => {
    // `pg` has it; its types leave it out.
    const { connection } = client as unknown as { connection: EventEmitter };
    connection.on('errorMessage', ({ code }: { readonly code?: string }) => {
      if (code === READ_ONLY_SQLSTATE) readOnly.add(client);
    });
  });
  // Not in the middle of a transaction, which is still to be rolled back.
  pool.on('release', (_error, client) => {
    if (readOnly.has(client)) void client.end();
  });
}
