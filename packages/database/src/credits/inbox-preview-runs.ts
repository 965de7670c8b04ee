/**
 * Runs of inbox previews as rows: their use, time, user and refunds.
 *
 * The credits are moved in the same transaction (`credits.ts`); the days of the runs are locked before
 * (`usage-watermarks.ts`).
 *
 * By the primary keys; `environments` and `users` by theirs.
 */
import type { UtcDay } from '@sluice/domain/values/utc-day';
import { sql } from 'kysely';
import { AppError } from '@sluice/domain/values/errors';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { dayText } from './usage-watermarks.ts';

export interface PreviewRun {
  readonly previewJobId: string;
  readonly day: UtcDay;
  readonly environmentId: number;
  /** Null: no user ran it. */
  readonly userId: number | null;
  readonly quantity: number;
  readonly refunded: number;
  readonly recordedAt: Date;
}

/** A row's `user_id` is always a number, so that it can be part of a key: 0 stands for no user. */
export const toUserId = (kept: number): number | null => (kept === 0 ? null : kept);
export const fromUserId = (userId: number | null): number => userId ?? 0;

export async function findPreviewRun(
  database: DatabaseOrTransaction,
  accountId: number,
  previewJobId: string,
): Promise<PreviewRun | undefined> {
  const { rows } = await sql<Omit<PreviewRun, 'userId'> & { userId: number }>`
    select preview_job_id as "previewJobId", ${dayText('usage_day')} as day,
           environment_id as "environmentId", user_id as "userId", quantity, refunded,
           recorded_at as "recordedAt"
      from inbox_preview_runs
     where account_id = ${accountId} and preview_job_id = ${previewJobId}`.execute(database);
  const [row] = rows;
  return row && { ...row, userId: toUserId(row.userId) };
}

/** A job has one row: call it only if its credits have just been taken. */
export async function insertPreviewRun(
  transaction: Transaction,
  accountId: number,
  run: PreviewRun,
): Promise<void> {
  await sql`
    insert into inbox_preview_runs
      (account_id, preview_job_id, usage_day, environment_id, user_id, quantity, refunded, recorded_at)
    values (${accountId}, ${run.previewJobId}, ${run.day}::date, ${run.environmentId},
            ${fromUserId(run.userId)}, ${run.quantity}, ${run.refunded}, ${run.recordedAt})`.execute(
    transaction,
  );
}

/** Notes the refund of a run, also in the sums of its day if that is closed. */
export async function refundPreviewRun(
  transaction: Transaction,
  accountId: number,
  run: PreviewRun,
  quantity: number,
  closedThrough: UtcDay,
): Promise<void> {
  await sql`
    update inbox_preview_runs set refunded = refunded + ${quantity}
     where account_id = ${accountId} and preview_job_id = ${run.previewJobId}`.execute(transaction);
  if (run.day > closedThrough) return;
  const userId = fromUserId(run.userId);
  const { numAffectedRows } = await sql`
    update inbox_preview_days d set refunded = d.refunded + ${quantity}
      from (values ('workspace_user', ${run.environmentId}::int, ${userId}::int),
                   ('workspace', ${run.environmentId}::int, 0), ('user', 0, ${userId}::int), ('day', 0, 0))
             as g (grain, environment_id, user_id)
     where d.account_id = ${accountId} and d.grain = g.grain and d.usage_day = ${run.day}::date
       and d.environment_id = g.environment_id and d.user_id = g.user_id`.execute(transaction);
  if (numAffectedRows !== 4n) throw new AppError('BUG', 'a closed day lacks the sums of a run');
}

/** The given workspace and user, if they are the account's; deleted workspaces included. */
export async function findUsageOwners(
  database: DatabaseOrTransaction,
  accountId: number,
  given: { readonly environmentId: number | undefined; readonly userId: number | undefined },
): Promise<{ readonly ownsEnvironment: boolean; readonly hasUser: boolean }> {
  const { rows } = await sql<{ ownsEnvironment: boolean; hasUser: boolean }>`
    select exists (select from environments
                    where account_id = ${accountId}
                      and environment_id = ${given.environmentId ?? null}) as "ownsEnvironment",
           exists (select from users
                    where account_id = ${accountId}
                      and user_id = ${given.userId ?? null}) as "hasUser"`.execute(database);
  return rows[0] ?? { ownsEnvironment: false, hasUser: false };
}
