/**
 * Computes the usage of inbox previews again from the runs. The runs stay for good. It compares the sums of every
 * closed day at each of its four grains, and the ledger's debits for the runs. Beside `usage-watermarks.ts`, which
 * sums, and `inbox-preview-runs.ts`, which records; `npm run verify` asks.
 *
 * Indexes: each statement reads the runs of all accounts once, from `inbox_preview_runs_by_day` alone if Postgres has
 * vacuumed them, and joins its result by the primary key of `inbox_preview_days`.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { GRAIN_OF_RUNS } from '../credits/usage-watermarks.ts';

export interface UsageDifference {
  readonly accountId: number;
  /** The compared sum: a day at a grain, `2026-03-01 workspace 7`, or the ledger's debits. */
  readonly of: string;
  /** `runs used refunded`, null if there is no such row: as it is kept, and as the runs make it. */
  readonly kept: string | null;
  readonly recomputed: string | null;
}

/** Of all accounts, in one snapshot. A day past the account's mark must not be summed at all. */
export async function listUsageDayDifferences(
  database: DatabaseOrTransaction,
): Promise<UsageDifference[]> {
  const { rows } = await sql<UsageDifference>`
    with recomputed as (
      select r.account_id, ${GRAIN_OF_RUNS} as grain, r.usage_day,
             coalesce(r.environment_id, 0) as environment_id, coalesce(r.user_id, 0) as user_id,
             concat_ws(' ', count(*), sum(r.quantity), sum(r.refunded)) as sums
        from usage_watermarks w
        join inbox_preview_runs r
          on r.account_id = w.account_id and r.usage_day <= w.closed_through
       group by r.account_id, r.usage_day, cube (r.environment_id, r.user_id)
    ), kept as (
      select account_id, grain, usage_day, environment_id, user_id,
             concat_ws(' ', runs, used, refunded) as sums
        from inbox_preview_days
    )
    select account_id::int as "accountId",
           concat_ws(' ', to_char(usage_day, 'YYYY-MM-DD'), grain, nullif(environment_id, 0),
                     case when grain like '%user' then user_id end) as "of",
           kept.sums as kept, recomputed.sums as recomputed
      from kept
      full join recomputed using (account_id, grain, usage_day, environment_id, user_id)
     where kept.sums is distinct from recomputed.sums
     order by account_id, usage_day, grain, environment_id, user_id`.execute(database);
  return rows;
}

/**
 * Of all accounts, in one snapshot: each run is one debit of its quantity (`api/src/usage/record-preview-run.ts` names
 * it `preview:<job>`), and its refund gives back the run's refunded amount.
 */
export async function listUsageCreditDifferences(
  database: DatabaseOrTransaction,
): Promise<UsageDifference[]> {
  const { rows } = await sql<UsageDifference>`
    with recomputed as (
      select account_id,
             concat_ws(' ', count(*), sum(quantity), sum(refunded)) as sums
        from inbox_preview_runs group by account_id
    ), kept as (
      select account_id,
             concat_ws(' ', count(distinct transaction_key) filter (where to_place = 'used'),
                       coalesce(sum(amount) filter (where to_place = 'used'), 0),
                       coalesce(sum(amount) filter (where from_place = 'used'), 0)) as sums
        from credit_entries
       where kind = 'inbox_previews' and transaction_key like 'preview:%'
       group by account_id
    )
    select account_id::int as "accountId", 'the credit ledger' as "of",
           kept.sums as kept, recomputed.sums as recomputed
      from kept
      full join recomputed using (account_id)
     where kept.sums is distinct from recomputed.sums
     order by account_id`.execute(database);
  return rows;
}

/** Numbers of the compared rows. */
export async function countUsage(
  database: DatabaseOrTransaction,
): Promise<{ readonly runs: number; readonly sums: number }> {
  const { rows } = await sql<{ runs: string; sums: string }>`
    select (select count(*) from inbox_preview_runs) as runs,
           (select count(*) from inbox_preview_days) as sums`.execute(database);
  return { runs: Number(rows[0]?.runs), sums: Number(rows[0]?.sums) };
}
