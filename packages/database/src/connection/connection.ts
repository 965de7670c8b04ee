/**
 * The door to Postgres: one pool a process, and Kysely over it. Transactions are opened in use
 * cases only; every statement takes the database or the transaction as its first argument.
 */
import type { EventEmitter } from 'node:events';
import {
  Kysely,
  PostgresDialect,
  sql,
  type QueryExecutorProvider,
  type Transaction as KyselyTransaction,
} from 'kysely';
import pg from 'pg';
import { Client, PREPARED_TEXT } from './client.ts';
import { ConnectionWatch } from './connection-watch.ts';
import { afterRunning } from './running-time.ts';

/**
 * Kysely knows no tables: every statement is SQL, and its type parameter describes its rows (docs/design/README.md).
 */
export type Database = Kysely<unknown>;
export type Transaction = KyselyTransaction<unknown>;
export type DatabaseOrTransaction = QueryExecutorProvider;

/**
 * Begins the text of a statement that is to be prepared: parsed and planned once for each connection instead of each
 * time, which is half of the cost of a small read. For frequent statements whose plan does not depend on their
 * values; their texts stay on each connection, so they must be few.
 */
export const PREPARED = sql.raw(PREPARED_TEXT);

/**
 * Begins the text of a statement whose answer is useless after this time: its connection is then ended, so that it does
 * not keep its place in the pool. For questions that Postgres answers at once when it is there. Postgres itself goes on
 * with the statement; one that may wait for a lock needs `statementMsMax` instead.
 */
export const answeredWithin = (durationMs: number) => sql.raw(`/* within ${durationMs} ms */`);

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
  // For a server that drops packets silently: an error that is retried is better than a wait.
  const pool = new BoundedPool(connectMsMax, {
    connectionString: options.url,
    Client: class extends Client {
      constructor(config?: pg.ClientConfig) {
        super(config ?? {}, { connectMsMax, answerMsMax: statementMsMax });
      }
    },
    // Only `inPipelinedTransaction` asks for a statement before the one in front of it is answered.
    pipeline: true,
    max: options.poolMax,
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
    watch.add(client as unknown as Client);
  });
  pool.on('remove', (client) => watch.remove(client as unknown as Client));
  return new Kysely({ dialect: new PostgresDialect({ pool }) });
}

/** Bounds the wait for a connection that others use or that is being made. `pg`'s own bound is a plain timer. */
class BoundedPool extends pg.Pool {
  readonly #waitMsMax: number;
  readonly #connectionsMax: number;

  constructor(waitMsMax: number, config: pg.PoolConfig & { readonly max: number }) {
    super(config);
    this.#waitMsMax = waitMsMax;
    this.#connectionsMax = config.max;
  }

  override connect(...given: unknown[]): never {
    const connect = super.connect.bind(this) as (...all: unknown[]) => unknown;
    const isMade = this.idleCount === 0 && this.totalCount < this.#connectionsMax;
    // A connection that is made has a bound of its own, and a free one comes in this turn.
    const isBounded = given.length > 0 || isMade || this.idleCount > this.waitingCount;
    return (isBounded ? connect(...given) : this.#inTime(() => connect())) as never;
  }

  async #inTime(connect: () => unknown): Promise<unknown> {
    // `pg` has it; its types leave it out.
    const { _pendingQueue: waiting } = this as unknown as PoolOfWaiters;
    const connected = connect();
    const waiter = waiting.at(-1);
    const late = Promise.withResolvers<never>();
    const cancel = afterRunning(this.#waitMsMax, () => {
      // The pool takes a connection back that it makes for such a one.
      if (waiter) waiter.timedOut = true;
      if (waiter && waiting.includes(waiter)) waiting.splice(waiting.indexOf(waiter), 1);
      late.reject(
        new Error(
          `timeout exceeded when trying to connect: each of the ${this.#connectionsMax} connections of this pool was in use or being made for ${this.#waitMsMax} ms`,
        ),
      );
    });
    try {
      return await Promise.race([connected, late.promise]);
    } finally {
      cancel();
    }
  }
}

interface PoolOfWaiters {
  readonly _pendingQueue: { timedOut?: boolean }[];
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
