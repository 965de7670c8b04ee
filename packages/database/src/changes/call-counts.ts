/**
 * Counts of calls in windows of time, shared by all API processes. Without a tenant, since a call is counted before
 * it has one.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/**
 * Takes `count` calls of a subject in a window.
 *
 * @param windowStartedAtMs - if it is older than the window on record (a clock that is behind), the call counts in that
 *   window.
 * @returns how many are taken in the window now, these included; it goes on growing past any limit. Index: the primary
 *   key. Within a window no indexed column changes, so the row is updated in place.
 */
export async function takeCalls(
  database: DatabaseOrTransaction,
  subject: string,
  count: number,
  windowStartedAtMs: number,
): Promise<number> {
  const { rows } = await sql<{ taken: string }>`
    insert into call_counts (subject, window_started_at, taken)
    values (${subject}, ${new Date(windowStartedAtMs)}, ${count})
    on conflict (subject) do update
      set taken = excluded.taken
            + case when call_counts.window_started_at < excluded.window_started_at
                   then 0 else call_counts.taken end,
          window_started_at = greatest(call_counts.window_started_at, excluded.window_started_at)
    returning taken`.execute(database);
  return Number(rows[0]?.taken);
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
