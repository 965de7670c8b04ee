/** Measures the difference between our clock and Postgres' clock. */
import type { ClockDifference } from '@sluice/domain/values/clock-difference';
import { sql } from 'kysely';
import { answeredWithin, type DatabaseOrTransaction } from './connection.ts';

const ANSWER_MS_MAX = 5_000;
const TRIES_MAX = 3;
/** No better is needed. The first question often waits for a connection to be made. */
const CERTAIN_MS = 50;

export interface Clocks {
  /** Unix milliseconds: the clock that is measured. May be set meanwhile. */
  readonly now: () => number;
  /** Milliseconds, never set. The wait for the answer is measured with it. */
  readonly monotonicNow: () => number;
}

/** How far `now` is from Postgres' clock: the most certain of a few answers. */
export async function measureClock(
  database: DatabaseOrTransaction,
  clocks: Clocks,
): Promise<ClockDifference> {
  let best = await askOnce(database, clocks);
  for (let tries = 1; tries < TRIES_MAX && best.uncertaintyMs > CERTAIN_MS; tries++) {
    const found = await askOnce(database, clocks);
    if (found.uncertaintyMs < best.uncertaintyMs) best = found;
  }
  return best;
}

/**
 * Postgres read its clock at about the middle of the wait. If `now` was set during the wait, it is uncertain with which
 * of its two times Postgres' time is compared.
 */
async function askOnce(
  database: DatabaseOrTransaction,
  { now, monotonicNow }: Clocks,
): Promise<ClockDifference> {
  const askedAtMs = now();
  const waitBeganMs = monotonicNow();
  const { rows } = await sql<{ nowMs: number }>`${answeredWithin(ANSWER_MS_MAX)}
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`.execute(database);
  const waitMs = monotonicNow() - waitBeganMs;
  const answeredAtMs = now();
  const setByMs = Math.abs(answeredAtMs - askedAtMs - waitMs);
  return {
    aheadMs: answeredAtMs - waitMs / 2 - (rows[0]?.nowMs ?? Number.NaN),
    uncertaintyMs: waitMs / 2 + setByMs,
  };
}
