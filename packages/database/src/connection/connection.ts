/**
 * The door to Postgres: one pool a process, and Kysely over it. Transactions are opened in use
 * cases only; every statement takes the database or the transaction as its first argument.
 */
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { GatheredWrites } from '@sluice/domain/values/gathered-writes';
import {
  Kysely,
  PostgresDialect,
  sql,
  type QueryExecutorProvider,
  type Transaction as KyselyTransaction,
} from 'kysely';
import pg from 'pg';
import { ConnectionWatch, type WatchedConnection } from './connection-watch.ts';

/**
 * Kysely knows no tables: every statement is SQL, and its type parameter describes its rows (docs/design/README.md).
 */
export type Database = Kysely<unknown>;
export type Transaction = KyselyTransaction<unknown>;
export type DatabaseOrTransaction = QueryExecutorProvider;

const PREPARED_TEXT = '/* prepared */';

/**
 * Begins the text of a statement that is to be prepared: parsed and planned once for each connection instead of each
 * time, which is half of the cost of a small read. For frequent statements whose plan does not depend on their
 * values; their texts stay on each connection, so they must be few.
 */
export const PREPARED = sql.raw(PREPARED_TEXT);

/** Text → name. As many as there are such texts in the code. */
const preparedNames = new Map<string, string>();

const WITHIN_TEXT = /^\/\* within (\d+) ms \*\//;

/**
 * Begins the text of a statement whose answer is useless after this time: its connection is then ended, so that it does
 * not keep its place in the pool. For questions that Postgres answers at once when it is there. Postgres itself goes on
 * with the statement; one that may wait for a lock needs `statementMsMax` instead.
 */
export const answeredWithin = (durationMs: number) => sql.raw(`/* within ${durationMs} ms */`);

/** Gives the statements that ask for it a name, which is how `pg` prepares, or a deadline. */
class PreparingClient extends pg.Client implements WatchedConnection {
  /** `pg` sets it; its types leave it out. */
  declare readonly processID: number | null;
  busySinceMs: number | undefined = undefined;
  /** `begin` and the statement behind it, for example. */
  readonly #writes = new GatheredWrites(
    () => (this as unknown as { connection: { stream: Duplex } }).connection.stream,
  );
  /** Of every statement that does not name its own. */
  readonly answerMsMax: number | undefined = undefined;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('drain', () => (this.busySinceMs = undefined));
  }

  override query(...given: unknown[]): never {
    const [text, values] = given;
    this.#writes.expectWrite();
    // Until the client emits 'drain': then no statement is in progress.
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

  /** `pg` waits for the statements in progress of a pipelined connection. One that never ends is why it is ended. */
  override end(...given: unknown[]): never {
    if (this.busySinceMs !== undefined) (this as { pipeline: boolean }).pipeline = false;
    return (super.end.bind(this) as (...all: unknown[]) => never)(...given);
  }

  /**
   * If packets are dropped, this end gets no error: TCP resends unconfirmed packets for a quarter of an hour. `pg`'s
   * own `query_timeout` gives up the answer but keeps the connection, and the next statement would wait behind this
   * one. `end()` closes the socket of a client whose statement is in progress, without a goodbye.
   *
   * After a stall of this process its timers run before its sockets are read, so the answer may be here already.
   */
  async #endUnlessAnswered(answer: Promise<unknown>, msMax: number): Promise<unknown> {
    let isOver = false;
    let isLate = false;
    const endUnlessOver = (): void => {
      if (isOver) return;
      isLate = true;
      void this.end();
    };
    const timer = setTimeout(() => afterReading(endUnlessOver), msMax);
    try {
      return await answer;
    } catch (error) {
      if (!isLate) throw error;
      throw new Error(`Connection terminated: Postgres did not answer in ${msMax} ms`, {
        cause: error,
      });
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }
}

/** The first turn reads the sockets. A socket with TLS passes the bytes on in the second. */
const afterReading = (run: () => void): void => void setImmediate(() => setImmediate(run));

function nameOf(text: string): string {
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = `prepared_${preparedNames.size + 1}`;
    preparedNames.set(text, name);
  }
  return name;
}

const CONNECT_MS_MAX = 10_000;
/**
 * After so long without a byte the system probes a connection, and ends it when ten probes, a second apart, stay
 * unanswered; by default it would first probe after two hours. So a statement of any length is waited for as long as
 * the other end is there. It does not help while bytes of ours are unconfirmed: then TCP's own patience counts,
 * `net.ipv4.tcp_retries2`, which Node has no way to shorten (TCP_USER_TIMEOUT), and `connection-watch.ts` ends the
 * connection.
 */
const KEEP_ALIVE_AFTER_MS = 30_000;
/** Longer than nearly all statements take, so that hardly any is asked about. */
const LATE_AFTER_MS = 10_000;
const READ_ONLY_SQLSTATE = '25006';
/**
 * Part of the time for an answer after which Postgres gives up: before this end does, so that Postgres can report it.
 */
const SHARE_OF_POSTGRES = 0.8;

export interface DatabaseOptions {
  readonly url: string;
  /** At most so many connections. */
  readonly poolMax: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /**
   * Postgres ends a transaction that is silent for this time, and releases its locks. The locks of a hanging process
   * would block the process that takes over its work. Absent: never.
   */
  readonly idleInTransactionMsMax?: number;
  /**
   * For processes whose statements are all short: the longest wait for a statement, and for a connection. Postgres ends
   * a statement a little earlier. If not even that answer arrives, the connection is ended, and the next statement
   * opens another one. Absent: a statement takes as long as Postgres is at work on it.
   */
  readonly statementMsMax?: number;
  /**
   * A commit is confirmed when it is on the disk of Postgres, also if the server, the database or the role has
   * `synchronous_commit = off`. A worker removes a commit batch from the broker after the commit, so a crash of Postgres
   * would lose acknowledged calls. Absent: as Postgres is set.
   */
  readonly confirmsOnDisk?: boolean;
  /** To make a connection, and again to set its limits. Absent: ten seconds, or `statementMsMax` if that is shorter. */
  readonly connectMsMax?: number;
  /** A statement that takes longer is asked about (`connection-watch.ts`). Absent: ten seconds. */
  readonly lateAfterMs?: number;
  /** A connection of the pool that is idle broke; it is replaced on next use. */
  readonly onError: (error: Error) => void;
}

/** Connects on first use. Close with `destroy()`. int8 comes back as text, as `pg` gives it. */
export function createDatabase(options: DatabaseOptions): Database {
  const { statementMsMax, idleInTransactionMsMax, confirmsOnDisk = false } = options;
  const connectMsMax =
    options.connectMsMax ?? Math.min(CONNECT_MS_MAX, statementMsMax ?? CONNECT_MS_MAX);
  const limits = [
    statementMsMax !== undefined &&
      `set statement_timeout = ${Math.floor(statementMsMax * SHARE_OF_POSTGRES)}`,
    idleInTransactionMsMax !== undefined &&
      `set idle_in_transaction_session_timeout = ${idleInTransactionMsMax}`,
    // Other values stay: they are about replicas.
    confirmsOnDisk &&
      `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`,
  ].filter((limit) => limit !== false);
  const pool = new pg.Pool({
    connectionString: options.url,
    Client: class extends PreparingClient {
      override readonly answerMsMax = statementMsMax;
    },
    // Only `inPipelinedTransaction` asks for a statement before the one in front of it is answered.
    pipeline: true,
    max: options.poolMax,
    // For a server that drops packets silently: an error that is retried is better than a wait.
    connectionTimeoutMillis: connectMsMax,
    application_name: options.applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    // Once connected, since poolers refuse connections that begin with any of these.
    ...(limits.length > 0 && {
      // The time to connect is over by then, and a pooler whose Postgres is away would not answer for two minutes.
      onConnect: (client) =>
        client.query(`/* within ${connectMsMax} ms */ ${limits.join(';')}`) as unknown as void,
    }),
  });
  pool.on('error', options.onError);
  // When a connection breaks between two statements of a transaction, no statement listens: its 'error' would end the
  // process. The next statement on it fails with the reason.
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
 * stay open, and a busy pool would keep them for ever. So they are ended, and the next one is opened to the new
 * primary. The queues' pool does not need this: `pool.query` leaves every connection on which a statement failed.
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
