/** Asks Postgres what time it is. */
import type { ClockDifference } from '@sluice/domain/clock-difference';
import { sql } from 'kysely';
import { answeredWithin, type DatabaseOrTransaction } from './connection.ts';

const ANSWER_MS_MAX = 5_000;
const TRIES_MAX = 3;
/** No better is needed. The first question often waits for a connection to be made. */
const CERTAIN_MS = 50;

/** How far `now` (Unix milliseconds) is from Postgres' clock: the most certain of a few answers. */
export async function measureClock(
  database: DatabaseOrTransaction,
  now: () => number,
): Promise<ClockDifference> {
  let best = await askOnce(database, now);
  for (let tries = 1; tries < TRIES_MAX && best.uncertaintyMs > CERTAIN_MS; tries++) {
    const found = await askOnce(database, now);
    if (found.uncertaintyMs < best.uncertaintyMs) best = found;
  }
  return best;
}

/** Postgres' clock was read about in the middle of the wait. */
async function askOnce(
  database: DatabaseOrTransaction,
  now: () => number,
): Promise<ClockDifference> {
  const askedAtMs = now();
  const { rows } = await sql<{ nowMs: number }>`${answeredWithin(ANSWER_MS_MAX)}
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`.execute(database);
  const uncertaintyMs = (now() - askedAtMs) / 2;
  return { aheadMs: askedAtMs + uncertaintyMs - (rows[0]?.nowMs ?? Number.NaN), uncertaintyMs };
}
