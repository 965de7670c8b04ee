/**
 * Ends connections whose answer will never come. If packets are dropped, this end gets no error: TCP resends
 * unconfirmed packets for a quarter of an hour, and Node cannot shorten that. A deadline would have to be longer than
 * the longest intended statement (a day of usage, a dropped day, a lock). So the watch asks Postgres on its own connection:
 *
 *   a statement is late ─▶ ask ─┬─ its backend is active: wait on, without a limit ───────┐
 *                          ▲    ├─ a pooler is between us, so the state is unknown ───────┤ ask again
 *                          └────┼──────────────────────────────────────────────────┘
 *                               └─ no answer, or the backend is gone or idle, twice in a row
 *                                  ─▶ the connection is ended, the statement fails as "away"
 * Twice, because an answer may be on its way while Postgres already reports the backend as idle.
 * It costs a look at a few numbers every few seconds, and a connection only while something is late.
 */
import pg from 'pg';
import { createClient, type WatchedConnection } from './client.ts';
import { afterRunning } from './running-time.ts';

export interface ConnectionWatchOptions {
  readonly url: string;
  readonly applicationName: string;
  /** A statement that takes longer is asked about, repeatedly. */
  readonly lateAfterMs: number;
}

/** How long Postgres may take to be reached and to answer; beyond it it counts as away. */
const ANSWER_MS_MAX = 5_000;

export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions;
  readonly #connections = new Set<WatchedConnection>();
  /** Found dead the last time → the statement that it was about. */
  #suspects = new Map<WatchedConnection, number>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(options: ConnectionWatchOptions) {
    this.#options = options;
  }

  add(connection: WatchedConnection): void {
    this.#connections.add(connection);
    this.#timer ??= setInterval(() => void this.#look(), this.#options.lateAfterMs / 2).unref();
  }

  remove(connection: WatchedConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    const lateSinceMs = performance.now() - this.#options.lateAfterMs;
    const late = new Map<WatchedConnection, number>();
    for (const connection of this.#connections) {
      const { busySinceMs } = connection;
      if (busySinceMs !== undefined && busySinceMs < lateSinceMs) late.set(connection, busySinceMs);
    }
    if (late.size === 0) {
      this.#suspects.clear();
      return;
    }
    this.#isLooking = true;
    const isAtWork = await askPostgres(this.#options, [...late.keys()]);
    this.#isLooking = false;
    const suspects = new Map<WatchedConnection, number>();
    for (const [connection, sinceMs] of late) {
      if (isAtWork(connection) || connection.busySinceMs !== sinceMs) continue;
      if (this.#suspects.get(connection) === sinceMs) void connection.end();
      else suspects.set(connection, sinceMs);
    }
    this.#suspects = suspects;
  }
}

type Verdict = (connection: WatchedConnection) => boolean;

/** @returns for each of them whether it is worth waiting for; never throws. */
async function askPostgres(
  { url, applicationName }: ConnectionWatchOptions,
  connections: readonly WatchedConnection[],
): Promise<Verdict> {
  const client = createClient(
    { connectionString: url, application_name: applicationName },
    { connectMsMax: ANSWER_MS_MAX },
  );
  client.on('error', () => undefined);
  const cancel = afterRunning(ANSWER_MS_MAX, () => void client.end());
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number; state: string | null; own: number }>(
      `select pid, state, pg_backend_pid() as own from pg_stat_activity
        where pid = any($1::int[]) or pid = pg_backend_pid()`,
      [connections.map(({ processID }) => processID)],
    );
    const states = new Map(rows.map(({ pid, state }) => [pid, state]));
    const isDirect = rows[0]?.own === client.processID;
    return ({ processID }) => !isDirect || (processID !== null && isWorking(states.get(processID)));
  } catch (error) {
    // A Postgres that refuses with a reason (for example too many connections) is reachable.
    const isAnswer = error instanceof pg.DatabaseError;
    return () => isAnswer;
  } finally {
    cancel();
    void client.end().catch(() => undefined);
  }
}

/**
 * Undefined: gone. If `track_activities` is off, Postgres does not report the state of its backends, and it is null.
 */
const isWorking = (state: string | null | undefined): boolean =>
  state !== undefined && (state === null || !state.startsWith('idle'));
