/**
 * Ends the start behind a pooler that shares sessions between transactions.
 * PgBouncer does so with `pool_mode = transaction`. Sluice keeps state in sessions: prepared statements,
 * `statement_timeout`, `search_path` of the queues in Postgres, LISTEN. Such a pooler loses or mixes it, mostly without an
 * error. Two connections each make a setting of their own once, and read it in a few rounds (some ten milliseconds):
 *
 *   one    set ──── read, read ───────────────── read     its own each time, if sessions are kept
 *   other     set ────────────── begin ── read ── rollback
 * A last-in-first-out pooler returns the other's session, and a round-robin pooler another one each time.
 * The server's process number is no sign: two machines may have the same, and RDS Proxy (which keeps a session from its
 * first setting on) and Pgpool-II (several servers on one connection) would be refused although they keep the settings.
 */
import { randomUUID } from 'node:crypto';
import { AppError } from '@sluice/domain/values/errors';
import type pg from 'pg';
import { createClient } from './client.ts';
import { afterRunning } from './running-time.ts';

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
/** A name with a dot is anyone's to set. */
const SETTING = 'sluice.session';

/** Never throws: the start itself meets every error that hides the answer here. */
export async function judgeSessions({
  url,
  applicationName,
}: SessionOptions): Promise<SessionVerdict> {
  const connect = () => {
    const client = createClient(
      { connectionString: url, application_name: applicationName },
      { connectMsMax: ANSWER_MS_MAX },
    );
    client.on('error', () => undefined);
    return client;
  };
  const one = connect();
  const other = connect();
  const cancel = afterRunning(ANSWER_MS_MAX, () => {
    // With a statement under way this closes the socket.
    void one.end();
    void other.end();
  });
  try {
    await Promise.all([one.connect(), other.connect()]);
    const ofOne = await mark(one);
    const ofOther = await mark(other);
    for (let round = 0; round < ROUND_COUNT; round++) {
      if ((await readMark(one)) !== ofOne || (await readMark(one)) !== ofOne) return 'shared';
      await other.query('begin');
      const isOtherKept = (await readMark(other)) === ofOther;
      // Not after a verdict: the one would wait for the other, if there is one session for both.
      if (!isOtherKept || (await readMark(one)) !== ofOne) return 'shared';
      await other.query('rollback');
    }
    return 'kept';
  } catch {
    return 'unknown';
  } finally {
    cancel();
    void one.end().catch(() => undefined);
    void other.end().catch(() => undefined);
  }
}

/**
 * For the start of a process. Ends it only if two judgements, each on connections of its own, agree: a pooler that
 * opens its sessions anew after a failover loses their contents once.
 *
 * @throws AppError SESSIONS_SHARED
 */
export async function requireKeptSessions(options: SessionOptions): Promise<void> {
  for (let judged = 0; judged < 2; judged++)
    if ((await judgeSessions(options)) !== 'shared') return;
  throw new AppError(
    'SESSIONS_SHARED',
    'a pooler between this process and Postgres gives every transaction another session (PgBouncer: pool_mode = transaction). This breaks prepared statements, deadlines and queues, mostly without an error, and session settings would reach other clients. Set pool_mode = session, or let DATABASE_URL lead to Postgres itself, then start again',
  );
}

async function mark(client: pg.Client): Promise<string> {
  const value = randomUUID();
  await client.query(`set ${SETTING} = '${value}'`);
  return value;
}

async function readMark(client: pg.Client): Promise<string | null | undefined> {
  const { rows } = await client.query<{ value: string | null }>(
    `select current_setting('${SETTING}', true) as value`,
  );
  return rows[0]?.value;
}
