/**
 * A session of Postgres that lasts until it is ended. For locks that show that a process is alive. Statements that go
 * through the pool may have another session each time.
 *
 * Used by `maintenance/worker-processes.ts`.
 */
import pg from 'pg';
import type { SessionOptions } from './kept-sessions.ts';

/** A connection that the process keeps. */
export type Session = Pick<pg.Client, 'query' | 'end'>;

const ANSWER_MS_MAX = 5_000;
/** As for the connections of the pool (`connection.ts`). */
const KEEP_ALIVE_AFTER_MS = 30_000;

/**
 * @param onEnd - called once, on every kind of end, with the error if there was one.
 * @throws if Postgres is away.
 */
export async function openSession(
  { url, applicationName }: SessionOptions,
  onEnd: (error?: Error) => void,
): Promise<Session> {
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: ANSWER_MS_MAX,
    query_timeout: ANSWER_MS_MAX,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  });
  let failure: Error | undefined;
  client.on('error', (error) => (failure = error));
  await client.connect();
  client.once('end', () => onEnd(failure));
  return client;
}
