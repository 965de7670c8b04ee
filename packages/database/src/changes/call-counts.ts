/**
 * Counts of calls in windows of time, shared by all API processes. Without a tenant, since a call is counted before
 * it has one.
 */
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Between Postgres' clock and the clock of a process. */
const CLOCK_DIFFERENCE_MS_MAX = 60_000;

/** Calls of one subject. */
export interface TakenCalls {
  readonly subject: string;
  readonly count: number;
}

/**
 * Takes `count` calls of a subject in a window.
 *
 * Postgres' clock decides whether the window on record is in force. Without that, a clock that was set back by an hour
 * would lengthen a window of a second by as much.
 *
 * @param windowStartedAtMs - if it is older than the window on record (a clock that is behind), the call counts in that
 *   window while it is in force.
 * @param windowMs - length of both windows.
 * @returns how many are taken in the window now, these included; it goes on growing past any limit. Index: the primary
 *   key. Within a window no indexed column changes, so the row is updated in place.
 */
export async function takeCalls(
  database: DatabaseOrTransaction,
  subject: string,
  count: number,
  windowStartedAtMs: number,
  windowMs: number,
): Promise<number> {
  const given = sql`values (${subject}, ${new Date(windowStartedAtMs)}, ${count})`;
  const [row] = await take(database, given, windowMs);
  return Number(row?.taken);
}

/**
 * {@link takeCalls} of many subjects, each named once. Rows are locked in the order of their subject, so that there are no
 * deadlocks.
 *
 * @returns the answer of each, by its subject.
 */
export async function takeCallsOfEach(
  database: DatabaseOrTransaction,
  calls: readonly TakenCalls[],
  windowStartedAtMs: number,
  windowMs: number,
): Promise<ReadonlyMap<string, number>> {
  const given = sql`
    select subject, ${new Date(windowStartedAtMs)}::timestamptz, count
      from unnest(${calls.map(({ subject }) => subject)}::text[], ${calls.map(({ count }) => count)}::bigint[])
        as given (subject, count)
     order by subject`;
  const rows = await take(database, given, windowMs);
  return new Map(rows.map(({ subject, taken }) => [subject, Number(taken)]));
}

/** @param given - rows of subject, start of the window, and count. */
async function take(
  database: DatabaseOrTransaction,
  given: RawBuilder<unknown>,
  windowMs: number,
): Promise<readonly { readonly subject: string; readonly taken: string }[]> {
  const toleranceSeconds = CLOCK_DIFFERENCE_MS_MAX / 1_000;
  const isLaterInForce = sql`(
    call_counts.window_started_at > excluded.window_started_at
    and clock_timestamp() > call_counts.window_started_at - make_interval(secs => ${toleranceSeconds}::float8)
    and clock_timestamp() < call_counts.window_started_at
      + make_interval(secs => ${windowMs / 1_000 + toleranceSeconds}::float8))`;
  const { rows } = await sql<{ subject: string; taken: string }>`
    insert into call_counts (subject, window_started_at, taken)
    ${given}
    on conflict (subject) do update
      set taken = excluded.taken
            + case when call_counts.window_started_at = excluded.window_started_at or ${isLaterInForce}
                   then call_counts.taken else 0 end,
          window_started_at = case when ${isLaterInForce}
                                   then call_counts.window_started_at else excluded.window_started_at end
    returning subject, taken`.execute(database);
  return rows;
}

/** Index: `call_counts_by_age`. At most `limit` at a time. */
export async function clearCallCounts(
  database: DatabaseOrTransaction,
  startedBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    delete from call_counts where subject in (
      select subject from call_counts
       where window_started_at < ${new Date(startedBeforeMs)}
       order by window_started_at limit ${limit})`.execute(database);
}
