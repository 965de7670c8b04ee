/**
 * A session of Postgres that lasts until it is ended. For locks that show that a process is alive. Statements that go
 * through the pool may have another session each time.
 *
 * Used by `maintenance/worker-processes.ts`.
 */
import type pg from 'pg';
import { createClient } from './client.ts';
import type { SessionOptions } from './kept-sessions.ts';
import { afterRunning } from './running-time.ts';

/** A connection that the process keeps. */
export interface Session {
  /** @throws if the answer is late. The session goes on: its end would free the lock of a process that lives. */
  query<Row extends pg.QueryResultRow>(
    text: string,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>;
  end(): Promise<void>;
}

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
  const client = createClient(
    {
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    },
    { connectMsMax: ANSWER_MS_MAX },
  );
  let failure: Error | undefined;
  client.on('error', (error) => (failure = error));
  await client.connect();
  client.once('end', () => onEnd(failure));
  return {
    query: <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      inTime(client.query<Row>(text, [...values])),
    end: () => client.end(),
  };
}

async function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  const late = Promise.withResolvers<never>();
  const cancel = afterRunning(ANSWER_MS_MAX, () =>
    late.reject(new Error(`Postgres did not answer in ${ANSWER_MS_MAX} ms`)),
  );
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    cancel();
  }
}
