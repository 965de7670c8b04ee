/**
 * Finds a pending purchase of credits that equals a new one. Before: `api/src/billing/start-purchase-workflow.ts`,
 * which holds the account alone. So the second of two starts at the same moment sees the first.
 */
import { sql } from 'kysely';
import type { Transaction } from '../connection/connection.ts';
import {
  PURCHASE_WORKFLOW,
  type PurchaseKey,
  type PurchaseWorkflow,
} from './purchase-workflows.ts';

/** How long the same purchase again is taken for a repeated call, once the customer's credit has paid the first. */
const REPEAT_MS = 120_000;

/**
 * The same purchase of credits, if another start of it is the same click: one that is not paid yet, or that the
 * customer's credit has paid just now, with no card between. Call with the account held alone. Index:
 * `runs_by_content`.
 */
export async function findSamePurchase(
  transaction: Transaction,
  accountId: number,
  { lane, fingerprint }: Pick<PurchaseWorkflow, 'lane' | 'fingerprint'>,
  nowMs: number,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs
     where account_id = ${accountId} and fingerprint = ${fingerprint} and lane = ${lane}
       and kind in ('credits', 'inbox_previews')
       and (status = 'pending' and (expires_at is null or expires_at > ${new Date(nowMs)})
         or status = 'success' and result ? 'isPaidByCredit'
            and finished_at > ${new Date(nowMs - REPEAT_MS)})
     order by created_at desc limit 1`.execute(transaction);
  return rows[0];
}

/** Gives the customer the whole time to pay again. A purchase workflow that has ended stays as it is. */
export async function extendPurchase(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  expiresAtMs: number,
): Promise<void> {
  await sql`
    update runs set expires_at = ${new Date(expiresAtMs)}
     where account_id = ${accountId} and run_id = ${runId} and status = 'pending'
       and expires_at < ${new Date(expiresAtMs)}`.execute(transaction);
}
