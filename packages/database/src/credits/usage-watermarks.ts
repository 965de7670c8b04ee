/**
 * Watermarks up to which each account's days of usage are closed.
 * A closed day is read from its sums (`inbox_preview_days`), a later one from its runs, so never from both
 * (`account-conventions.md` §5.6). Recording and refunding lock the account's row, and a run's day is after the mark found
 * there, even if the clock is behind. So a closed day never gets a run. Closing locks the row too, and only then, in a
 * statement of its own, adds up. So the sums include the writes of the transactions that it waited for. Reading takes
 * mark, sums and runs in one statement, so from one snapshot.
 * The row is the first lock of a transaction, so there are no deadlocks. Writers could share the lock, but they wait for
 * one another at the account's credits anyway; and Postgres lets new sharers pass a waiter for the exclusive lock, so
 * days of a busy account would never close. A day is summed by workspace and user, as the log shows it, and at coarser
 * grains, so that a summary reads no more rows than it distinguishes. Indexes: primary key, `usage_watermarks_open` for
 * days to close, and a range of `inbox_preview_runs_by_day` an account for the sums.
 */
import type { UtcDay } from '@sluice/domain/values/utc-day';
import { sql } from 'kysely';
import { AppError } from '@sluice/domain/values/errors';
import type { Database, Transaction } from '../connection/connection.ts';

/** `YYYY-MM-DD` for every `DateStyle` of the session, and not the driver's `Date` of the host's zone. */
export const dayText = (column: string) => sql<UtcDay>`to_char(${sql.ref(column)}, 'YYYY-MM-DD')`;

/**
 * Keeps the account's days as they are until the transaction ends.
 *
 * @param before - the last closed day if the account has no usage yet: the day before today.
 * @returns the last closed day.
 */
export async function holdUsageDays(
  transaction: Transaction,
  accountId: number,
  before: UtcDay,
): Promise<UtcDay> {
  const hold = sql<{ closedThrough: UtcDay }>`
    select ${dayText('closed_through')} as "closedThrough" from usage_watermarks
     where account_id = ${accountId} for no key update`;
  const found = (await hold.execute(transaction)).rows[0];
  if (found) return found.closedThrough;
  await sql`
    insert into usage_watermarks (account_id, closed_through) values (${accountId}, ${before}::date)
    on conflict do nothing`.execute(transaction);
  const made = (await hold.execute(transaction)).rows[0];
  if (!made) throw new AppError('BUG', 'a watermark is gone');
  return made.closedThrough;
}

/** The grain of sums of runs `r` that are grouped by `cube (r.environment_id, r.user_id)`. */
export const GRAIN_OF_RUNS = sql`
  (array['workspace_user', 'workspace', 'user', 'day'])[1 + grouping(r.environment_id, r.user_id)]`;

/** Closed at a time, so that a worker that was away for long does not hold up its accounts for long. */
const DAYS_MAX = 31;

/**
 * Closes days up to `through` of at most `accountsMax` accounts, in one transaction. May be run again and by several
 * workers at once; the second waits and finds it done. Accounts are locked in the order of their numbers, so that two
 * workers never deadlock.
 *
 * @returns how many accounts went forward; 0 once all are closed so far.
 */
export function closeUsageDays(
  database: Database,
  through: UtcDay,
  accountsMax: number,
): Promise<number> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ accountId: string }>`
      select account_id as "accountId" from usage_watermarks
       where closed_through < ${through}::date
       order by account_id limit ${accountsMax} for no key update`.execute(transaction);
    if (rows.length === 0) return 0;
    const accountIds = rows.map((row) => row.accountId);
    // Its snapshot is taken now, after the locks: a statement that locked and added up at once would miss the writes of
    // the transactions that it waited for.
    await sql`
      with closing as (
        select account_id, closed_through,
               least(${through}::date, closed_through + ${DAYS_MAX}::int) as closes_through
          from usage_watermarks where account_id = any(${accountIds}::bigint[])
      ), summed as (
        insert into inbox_preview_days
          (account_id, grain, usage_day, environment_id, user_id, runs, used, refunded)
        select r.account_id, ${GRAIN_OF_RUNS}, r.usage_day, coalesce(r.environment_id, 0),
               coalesce(r.user_id, 0), count(*), sum(r.quantity), sum(r.refunded)
          from closing c
          join inbox_preview_runs r
            on r.account_id = c.account_id
           and r.usage_day > c.closed_through and r.usage_day <= c.closes_through
         group by r.account_id, r.usage_day, cube (r.environment_id, r.user_id)
      )
      update usage_watermarks w set closed_through = c.closes_through
        from closing c where w.account_id = c.account_id`.execute(transaction);
    return rows.length;
  });
}
