/** Asks Postgres what time it is. */
import type { ClockDifference } from '@sluice/domain/clock-difference';
import { sql } from 'kysely';
import { answeredWithin, type DatabaseOrTransaction } from './connection.ts';

const ANSWER_MS_MAX = 5_000;

/** How far `now` (Unix milliseconds) is from Postgres' clock, which was read about in the middle of the wait. */
export async function measureClock(
  database: DatabaseOrTransaction,
  now: () => number,
): Promise<ClockDifference> {
  const askedAtMs = now();
  const { rows } = await sql<{ nowMs: number }>`${answeredWithin(ANSWER_MS_MAX)}
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`.execute(database);
  const uncertaintyMs = (now() - askedAtMs) / 2;
  return { aheadMs: askedAtMs + uncertaintyMs - (rows[0]?.nowMs ?? Number.NaN), uncertaintyMs };
}
