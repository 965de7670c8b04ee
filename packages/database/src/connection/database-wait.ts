/**
 * Waits for an absent Postgres at the start of a process.
 * It may be in a power cut, recovery, a restore or a failover. If the process ended instead, its platform would restart
 * it with pauses that grow to minutes.
 *
 *   test ─┬─ away ────▶ pause, test again ◀────┐
 *         ├─ refuses the login ▶ the start ends │
 *         └─ there ─▶ join ─┬─ away ────────────┘
 *                           ├─ any other error ▶ the start ends
 *                           └─ joined
 * "Away" may pass by itself (`isWorthWaitingFor`). A wrong password, database or schema ends the process at once.
 * The test has its own connection, so a stop can cut it while Postgres or a pooler keeps the statement. A statement
 * of `join` can still delay the stop, if the path falls silent right after a successful test.
 */
import { reasonOf } from '@sluice/domain/values/errors';
import pg from 'pg';
import { databaseUnavailable, isWorthWaitingFor } from './database-away.ts';
import { afterRunning } from './running-time.ts';

export interface DatabaseWaitOptions<Joined> {
  readonly url: string;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** The start's work with Postgres. Runs again from its beginning if Postgres went away during it. */
  readonly join: () => Promise<Joined>;
  /**
   * A stop ends the tests and the pauses at once. It waits for a running `join` until the database closes, at most for
   * DRAIN_TIMEOUT_MS.
   */
  readonly lifecycle: { defer(name: string, close: () => void): void };
  readonly logger: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
  /** Called the first time that Postgres is away. */
  readonly onAway?: () => void;
}

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 5_000;
/** To connect and to answer. A pooler whose Postgres is away accepts clients and does not answer for two minutes. */
const ANSWER_MS_MAX = 5_000;
/** The first time: together with the loading of a process, the reason for the wait is printed within five seconds. */
const FIRST_ANSWER_MS_MAX = 3_000;
/** The first line is written at once. */
const LINE_INTERVAL_MS = 60_000;

/**
 * Resolves with the result of `join`. After a stop it never resolves: a start that was stopped must not go on with
 * resources that are closed. The stop ends the process.
 *
 * @throws AppError DATABASE_UNAVAILABLE if Postgres is there and refuses the login. Throws every error of `join`,
 *   except that Postgres is away.
 */
export async function waitForDatabase<Joined>(
  options: DatabaseWaitOptions<Joined>,
): Promise<Joined> {
  const { join, lifecycle, logger, onAway } = options;
  const stopping = new AbortController();
  lifecycle.defer('wait for the database', () => stopping.abort());
  const waitingSinceMs = performance.now();
  const waitedSeconds = () => Math.round((performance.now() - waitingSinceMs) / 1_000);
  let saidAtMs: number | undefined;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      const answerMsMax = saidAtMs === undefined ? FIRST_ANSWER_MS_MAX : ANSWER_MS_MAX;
      await knock(options, answerMsMax, stopping.signal);
      const joined = await join();
      await unlessStopped(stopping.signal);
      if (saidAtMs !== undefined)
        logger.info({ waitedSeconds: waitedSeconds() }, 'Postgres is there; the start goes on');
      return joined;
    } catch (error) {
      await unlessStopped(stopping.signal);
      if (!isWorthWaitingFor(error)) throw error;
      if (saidAtMs === undefined) onAway?.();
      if (saidAtMs === undefined || performance.now() - saidAtMs >= LINE_INTERVAL_MS) {
        saidAtMs = performance.now();
        const reason = reasonOf(error instanceof Error && error.cause ? error.cause : error);
        logger.warn(
          { reason, waitedSeconds: waitedSeconds() },
          'Postgres is away: this process waits for it, and starts when Postgres answers at the address of DATABASE_URL',
        );
      }
    }
    await pause(pauseMs, stopping.signal);
    await unlessStopped(stopping.signal);
  }
}

/** @throws AppError DATABASE_UNAVAILABLE, with the cause, unless Postgres answers the smallest question in time. */
async function knock(
  { url, applicationName }: Pick<DatabaseWaitOptions<unknown>, 'url' | 'applicationName'>,
  answerMsMax: number,
  signal: AbortSignal,
): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName,
  });
  // One that breaks between two statements; a statement fails by itself.
  client.on('error', () => undefined);
  const { connection } = client as unknown as ClientOnSocket;
  const cut = () => connection.stream.destroy();
  let isLate = false;
  const cancel = afterRunning(answerMsMax, () => {
    isLate = true;
    cut();
  });
  signal.addEventListener('abort', cut, { once: true });
  try {
    await client.connect();
    await client.query('select 1');
    await client.end();
  } catch (error) {
    cut();
    throw databaseUnavailable(
      isLate ? new Error(`Connection terminated: no answer in ${answerMsMax} ms`) : error,
    );
  } finally {
    cancel();
    signal.removeEventListener('abort', cut);
  }
}

/** `pg` has it; its types leave it out. */
interface ClientOnSocket {
  readonly connection: { readonly stream: { destroy(): void } };
}

const unlessStopped = ({ aborted }: AbortSignal): Promise<void> =>
  aborted ? new Promise(() => undefined) : Promise.resolve();

function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, durationMs);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
