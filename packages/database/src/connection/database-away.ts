/**
 * Distinguishes an unreachable Postgres from every other failure of a statement: only such a statement is worth another
 * try.
 */
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import { answeredWithin, type Database, type DatabaseOrTransaction } from './connection.ts';

const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ENOENT',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ECONNABORTED',
]);

/**
 * Connection exceptions, "too many connections", the three shutdowns, and a write on a server that is not the primary any
 * more (PostgreSQL manual, appendix A).
 */
const AWAY_SQLSTATE = /^(08|53300$|57P0[123]$|25006$)/;

/** A connection that ended in the middle of a statement has an error without a code. So have our own deadlines. */
const AWAY_MESSAGE =
  /^(Connection terminated|Postgres did not answer in |timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed)/;

/**
 * PgBouncer reports 08P01 for nearly every fault: if Postgres is away, and, in older versions, if it does not know the
 * user. It repeats Postgres' own answer as text ("server login has been failing, cached error: …").
 */
const REFUSED_BY_POOLER =
  /no such (user|database)|authentication failed|does not exist|unsupported startup parameter/;

/** True if the connection failed, and not the statement. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return NETWORK_CODES.has(code) || AWAY_SQLSTATE.test(code) || AWAY_MESSAGE.test(error.message);
}

/** True if Postgres may let this process in later without a corrected setting. For a start (`database-wait.ts`). */
export function isWorthWaitingFor(error: unknown): boolean {
  if (error instanceof AppError)
    return error.code === 'DATABASE_UNAVAILABLE' && isWorthWaitingFor(error.cause);
  return isDatabaseAway(error) && !REFUSED_BY_POOLER.test((error as Error).message);
}

/**
 * For the start of a program that does not wait.
 *
 * @throws AppError DATABASE_UNAVAILABLE if Postgres is away, or refuses this login.
 */
export async function requireDatabase(database: DatabaseOrTransaction): Promise<void> {
  try {
    await sql`select 1`.execute(database);
  } catch (error) {
    throw databaseUnavailable(error);
  }
}

export function databaseUnavailable(cause: unknown): AppError {
  const message = isWorthWaitingFor(cause)
    ? `Postgres does not answer at the address of DATABASE_URL (${reasonOf(cause)}); check that it runs and is reachable from here, then start again`
    : `Postgres refuses the values of DATABASE_URL (${reasonOf(cause)}); correct it, then start again`;
  return new AppError('DATABASE_UNAVAILABLE', message, { cause });
}

/**
 * True when Postgres answers the smallest question before the deadline; never throws. A connection without an answer
 * is ended: repeated probes would otherwise use up the whole pool.
 */
export async function isDatabaseAnswering(
  database: Database,
  deadlineMs: number,
): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, deadlineMs, false);
  });
  const answer = sql`${answeredWithin(deadlineMs)} select 1`.execute(database).then(
    () => true,
    () => false,
  );
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
