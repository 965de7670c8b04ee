/**
 * Purchases in manual review (`sendPurchaseToReview` of `purchase-workflows.ts`): listed, and let go on once somebody
 * has looked at the payment provider's side. For operators, so of all accounts, by the partial index `runs_set_aside`.
 *
 * Used by `sluice purchases` (`scripts/purchases.ts`); counted for the metrics of workers.
 */
import { sql } from 'kysely';
import { recordChange, type ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { forgiveAttempts } from './purchase-steps.ts';
import type { PurchaseWorkflow } from './purchase-workflows.ts';

export interface PurchaseInReview extends Pick<
  PurchaseWorkflow,
  'accountId' | 'runId' | 'kind' | 'lane' | 'status' | 'invoiceId' | 'createdAt'
> {
  readonly reviewReason: string;
}

const IN_REVIEW = sql`
  account_id::int as "accountId", run_id as "runId", kind, lane, status, invoice_id as "invoiceId",
  created_at as "createdAt", review_reason as "reviewReason"`;

/** Oldest first. */
export async function listPurchasesInReview(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<PurchaseInReview[]> {
  const { rows } = await sql<PurchaseInReview>`
    select ${IN_REVIEW} from runs
     where review_reason is not null order by created_at limit ${limit}`.execute(database);
  return rows;
}

/** Stops counting at `countMax`. */
export async function countPurchasesInReview(
  database: DatabaseOrTransaction,
  countMax: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count
      from (select from runs where review_reason is not null limit ${countMax}) as counted`.execute(
    database,
  );
  return Number(rows[0]?.count);
}

/** Locks a purchase in review; undefined if there is no such purchase. */
export async function lockPurchaseInReview(
  transaction: Transaction,
  runId: string,
): Promise<PurchaseInReview | undefined> {
  const { rows } = await sql<PurchaseInReview>`
    select ${IN_REVIEW} from runs
     where run_id = ${runId} and review_reason is not null for update`.execute(transaction);
  return rows[0];
}

/**
 * Lets a purchase workflow go on. A worker takes up a pending one within a second, from the step at which it stands,
 * and tries that as often as the first time; for one that has ended, the contradiction counts as looked at. The
 * account's audit log records it.
 *
 * @returns the purchase as it was in review; undefined if there is no such purchase.
 */
export async function releasePurchaseFromReview(
  database: Database,
  runId: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<PurchaseInReview | undefined> {
  return database.transaction().execute(async (transaction) => {
    const workflow = await lockPurchaseInReview(transaction, runId);
    if (!workflow) return undefined;
    const { accountId, reviewReason } = workflow;
    await forgiveAttempts(transaction, workflow);
    await sql`
      update runs set review_reason = null, lease_until = null, next_at = ${new Date(nowMs)}, wait_count = 0
       where account_id = ${accountId} and run_id = ${runId}`.execute(transaction);
    const change = {
      objectType: 'purchase',
      objectId: runId,
      before: { review_reason: reviewReason },
      after: { review_reason: null },
    } as const;
    await recordChange(transaction, accountId, { ...origin, runId }, change, nowMs);
    return workflow;
  });
}
