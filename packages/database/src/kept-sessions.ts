/**
 * Notices a pooler that gives a connection another session of Postgres for each transaction (PgBouncer's
 * `pool_mode = transaction`). What Sluice keeps in a session is then lost or another's, mostly without an error: prepared
 * statements, `statement_timeout`, LISTEN of queues and of the live tail in Postgres, the lock of a migration.
 *
 * Two connections tell, by the number of the server process that each is served by:
 *
 *   one    pid ── pid ────────────────── pid     the same each time, where sessions are kept
 *   other            begin ── pid ── rollback    never the one's, which is idle meanwhile
 *
 * A pooler that hands out what was given back last gives the other one's process; one that goes round gives the one
 * another each time. A few rounds, for those that draw lots. Some ten milliseconds of a start.
 */
import pg from 'pg';

/** `unknown`: Postgres could not be asked, or not twice at a time. */
export type SessionVerdict = 'kept' | 'shared' | 'unknown';

export interface SessionOptions {
  readonly url: string;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
}

const ROUND_COUNT = 3;
/** For all of it: a pooler with one session to give would make the second connection wait for minutes. */
const ANSWER_MS_MAX = 5_000;

/** For the start of a process. Never throws, since what can be told is a warning: the start itself finds out the rest. */
export async function judgeSessions({
  url,
  applicationName,
}: SessionOptions): Promise<SessionVerdict> {
  const connect = () => {
    const client = new pg.Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: ANSWER_MS_MAX,
    });
    client.on('error', () => undefined);
    return client;
  };
  const one = connect();
  const other = connect();
  const timer = setTimeout(() => {
    // With a statement under way this closes the socket.
    void one.end();
    void other.end();
  }, ANSWER_MS_MAX);
  try {
    await Promise.all([one.connect(), other.connect()]);
    const first = await processOf(one);
    for (let round = 0; round < ROUND_COUNT; round++) {
      if ((await processOf(one)) !== first) return 'shared';
      await other.query('begin');
      const isTaken = (await processOf(other)) === first;
      // Not after a verdict: the one would wait for the other, where there is one session for both.
      if (isTaken || (await processOf(one)) !== first) return 'shared';
      await other.query('rollback');
    }
    return 'kept';
  } catch {
    return 'unknown';
  } finally {
    clearTimeout(timer);
    void one.end().catch(() => undefined);
    void other.end().catch(() => undefined);
  }
}

/** One line of the log, where sessions are not kept. */
export async function warnOfSharedSessions(
  options: SessionOptions,
  logger: { warn(message: string): void },
): Promise<void> {
  if ((await judgeSessions(options)) === 'shared') {
    logger.warn(
      'a pooler between this process and Postgres gives every transaction another session (PgBouncer: pool_mode = transaction), which breaks prepared statements, deadlines, LISTEN and locks, mostly without an error: set pool_mode = session, or let DATABASE_URL lead to Postgres itself',
    );
  }
}

async function processOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid;
}
