/**
 * The start of a process waits here for a Postgres that is away: after a power cut, while it goes over its log or a
 * backup is restored, while a replica takes its place. A process that ended instead would be started again and again
 * by its platform, with pauses that grow to minutes, and the installation would stand for as long afterwards.
 *
 *   knock ─┬─ away ─────▶ pause, knock again ◀──┐
 *          ├─ lets nobody in: the start ends     │
 *          └─ there ─▶ join ─┬─ away ────────────┘
 *                            ├─ any other error: the start ends
 *                            └─ joined
 *
 * Away is what may pass by itself (`isWorthWaitingFor`). A wrong password, database or schema does not: the process
 * ends at once and says what to correct.
 *
 * It knocks on a connection of its own, so that a stop meanwhile can cut it: one that is not answered, or a pooler that
 * keeps a statement until Postgres is back, would otherwise hold the stop up. A statement of `join` still does, where the path
 * falls silent just after a knock was answered.
 */
import { reasonOf } from '@sluice/domain/values/errors';
import pg from 'pg';
import { databaseUnavailable, isWorthWaitingFor } from './database-away.ts';

export interface DatabaseWaitOptions<Joined> {
  readonly url: string;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** What a start needs of Postgres. Run from its beginning when Postgres went away in it. */
  readonly join: () => Promise<Joined>;
  /**
   * A stop ends the knocking and the pauses at once. What `join` is at is waited for: closing the database does, at most for
   * DRAIN_TIMEOUT_MS.
   */
  readonly lifecycle: { defer(name: string, close: () => void): void };
  readonly logger: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
  /** Told the first time that Postgres is away. */
  readonly onAway?: () => void;
}

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 5_000;
/** To be reached and to answer. A pooler whose Postgres is away lets clients in and says nothing for two minutes. */
const ANSWER_MS_MAX = 5_000;
/** The first time: with the time to load a process, whoever starts it reads within five seconds what it waits for. */
const FIRST_ANSWER_MS_MAX = 3_000;
/** The first line is written at once. */
const LINE_INTERVAL_MS = 60_000;

/**
 * Resolves with what `join` gives. After a stop it never resolves: a start that was stopped must not go on with resources
 * that are closed. The stop ends the process.
 *
 * @throws AppError DATABASE_UNAVAILABLE if Postgres is there and lets nobody in; and what `join` throws, other than
 * that Postgres is away.
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
    connectionTimeoutMillis: answerMsMax,
  });
  // One that breaks between two statements; a statement fails by itself.
  client.on('error', () => undefined);
  const { connection } = client as unknown as ClientOnSocket;
  const cut = () => connection.stream.destroy();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    cut();
  }, answerMsMax);
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
    clearTimeout(timer);
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
