/**
 * Purchase workflows in Postgres: started once a lane, claimed by one worker at a time, ended once.
 *
 * A claim takes the purchase workflow's next fencing number. Every later write of the worker names it, so a worker that
 * was overtaken cannot write. Times of leases are the database's own.
 *
 * By the primary key; by `runs_in_flight`, which holds one pending purchase workflow an account and lane; by
 * `runs_by_time` for lists; by `runs_due` for the reconcile loop.
 */
import type {
  PaymentMethodType,
  PurchaseEnding,
  PurchaseKind,
  PurchaseLane,
  PurchaseStatus,
} from '@sluice/domain/billing/purchase-workflow';
import type { PurchaseContent, PurchaseResult } from '@sluice/domain/billing/purchase-content';
import { sql } from 'kysely';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';

export interface PurchaseKey {
  readonly accountId: number;
  readonly runId: string;
}

export interface PurchaseWorkflow extends PurchaseKey {
  readonly lane: PurchaseLane;
  readonly kind: PurchaseKind;
  readonly rail: PaymentMethodType;
  readonly fingerprint: string;
  readonly status: PurchaseStatus;
  readonly message: string | null;
  /** The purchased content (`domain/src/billing/purchase-content.ts`). */
  readonly content: PurchaseContent;
  readonly result: PurchaseResult | null;
  readonly invoiceId: string | null;
  readonly origin: ChangeOrigin;
  readonly fence: number;
  readonly waitCount: number;
  readonly expiresAt: Date | null;
  readonly reviewReason: string | null;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
}

export type NewPurchaseWorkflow = Pick<
  PurchaseWorkflow,
  'accountId' | 'runId' | 'lane' | 'kind' | 'rail' | 'fingerprint'
> & {
  readonly content: PurchaseContent;
  readonly origin: ChangeOrigin;
  readonly expiresAtMs: number | null;
};

/** Columns of `runs`. */
export const PURCHASE_WORKFLOW = sql`
  account_id::int as "accountId", run_id as "runId", lane, kind, rail, fingerprint, status, message,
  content, result, invoice_id as "invoiceId", origin, fence::int, wait_count as "waitCount",
  expires_at as "expiresAt", review_reason as "reviewReason", created_at as "createdAt",
  finished_at as "finishedAt"`;

/** No worker has it now, by the database's clock. */
const IS_FREE = sql`(lease_until is null or lease_until < clock_timestamp())`;

/** @returns undefined if the lane is taken by a pending purchase workflow. */
export async function insertPurchaseWorkflow(
  database: DatabaseOrTransaction,
  workflow: NewPurchaseWorkflow,
  nowMs: number,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, expires_at,
                      next_at, created_at)
    values (${workflow.accountId}, ${workflow.runId}, ${workflow.lane}, ${workflow.kind}, ${workflow.rail},
            ${workflow.fingerprint}, ${JSON.stringify(workflow.content)}, ${JSON.stringify(workflow.origin)},
            ${workflow.expiresAtMs === null ? null : new Date(workflow.expiresAtMs)}, ${new Date(nowMs)},
            ${new Date(nowMs)})
    on conflict (account_id, lane) where status = 'pending' and lane <> 'card' do nothing
    returning ${PURCHASE_WORKFLOW}`.execute(database);
  return rows[0];
}

/**
 * Card purchases of the account since `sinceMs` that are not paid yet, `countMax` at most. By `runs_by_time`, so
 * `sinceMs` bounds the rows that are read: an unpaid one ends after `CARD_PAYMENT_MS`.
 */
export async function countUnpaidCardPurchases(
  database: DatabaseOrTransaction,
  accountId: number,
  sinceMs: number,
  countMax: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count
      from (select 1 from runs
             where account_id = ${accountId} and created_at > ${new Date(sinceMs)}
               and lane = 'card' and status = 'pending'
             limit ${countMax}) as unpaid`.execute(database);
  return Number(rows[0]?.count);
}

export async function findPendingPurchase(
  database: DatabaseOrTransaction,
  accountId: number,
  lane: PurchaseLane,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs
     where account_id = ${accountId} and lane = ${lane} and status = 'pending' and lane <> 'card'`.execute(
    database,
  );
  return rows[0];
}

export async function findPurchaseWorkflow(
  database: DatabaseOrTransaction,
  accountId: number,
  runId: string,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs where account_id = ${accountId} and run_id = ${runId}`.execute(
    database,
  );
  return rows[0];
}

export async function findPurchaseOfInvoice(
  database: DatabaseOrTransaction,
  accountId: number,
  invoiceId: string,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs where account_id = ${accountId} and invoice_id = ${invoiceId}
     order by run_id limit 1`.execute(database);
  return rows[0];
}

/** Newest first. @param before - of the last purchase workflow of the page before. */
export async function listPurchaseWorkflows(
  database: DatabaseOrTransaction,
  accountId: number,
  before: { readonly createdAtMs: number; readonly runId: string } | undefined,
  limit: number,
): Promise<PurchaseWorkflow[]> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs
     where account_id = ${accountId}
       ${before ? sql`and (created_at, run_id) < (${new Date(before.createdAtMs)}, ${before.runId})` : sql``}
     order by created_at desc, run_id desc limit ${limit}`.execute(database);
  return rows;
}

/** The pending purchase workflows of lanes that exclude others. Index: `runs_in_flight`. */
export async function listPendingPurchases(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<PurchaseWorkflow[]> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs
     where account_id = ${accountId} and status = 'pending' and lane <> 'card'
     order by created_at`.execute(database);
  return rows;
}

/** @returns undefined if it is not pending, or another worker has it. */
export async function claimPurchaseWorkflow(
  database: DatabaseOrTransaction,
  { accountId, runId }: PurchaseKey,
  leaseMs: number,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    update runs set fence = fence + 1,
           lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
     where account_id = ${accountId} and run_id = ${runId} and status = 'pending'
       and review_reason is null and ${IS_FREE}
    returning ${PURCHASE_WORKFLOW}`.execute(database);
  return rows[0];
}

/**
 * Keeps the lease for a worker that is still at it. One that was given back stays so, as does an ended purchase’s.
 *
 * @returns false if the purchase workflow has ended, or another worker has it.
 */
export async function renewPurchaseLease(
  database: DatabaseOrTransaction,
  workflow: PurchaseKey & { readonly fence: number },
  leaseMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    update runs set lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
     where account_id = ${workflow.accountId} and run_id = ${workflow.runId} and fence = ${workflow.fence}
       and status = 'pending' and lease_until is not null
    returning 1`.execute(database);
  return rows.length > 0;
}

/** Locks the purchase workflow, for a transaction that decides about it. */
export async function lockPurchaseWorkflow(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
): Promise<PurchaseWorkflow | undefined> {
  const { rows } = await sql<PurchaseWorkflow>`
    select ${PURCHASE_WORKFLOW} from runs where account_id = ${accountId} and run_id = ${runId} for update`.execute(
    transaction,
  );
  return rows[0];
}

export async function updatePurchaseInvoice(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  invoiceId: string,
): Promise<void> {
  await sql`
    update runs set invoice_id = ${invoiceId}
     where account_id = ${accountId} and run_id = ${runId}`.execute(transaction);
}

/** Call with the purchase workflow locked. @returns false if it has ended before: an ending is for ever. */
export async function finishPurchaseWorkflow(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  end: {
    readonly status: PurchaseEnding;
    readonly message: string | null;
    readonly result: PurchaseResult;
  },
  nowMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    update runs set status = ${end.status}, message = ${end.message},
           result = ${JSON.stringify(end.result)}, finished_at = ${new Date(nowMs)},
           lease_until = null, review_reason = null
     where account_id = ${accountId} and run_id = ${runId} and status = 'pending'
    returning 1`.execute(transaction);
  return rows.length > 0;
}

/** Facts about a purchase that became known after its ending, which stays. Call with the purchase workflow locked. */
export async function updatePurchaseResult(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  result: PurchaseResult,
): Promise<void> {
  await sql`
    update runs set result = ${JSON.stringify(result)}
     where account_id = ${accountId} and run_id = ${runId}`.execute(transaction);
}

/** A bank pays within two weeks; the payment provider tries a refused payment for at most two more. */
const PAYMENT_DUE_DAYS = 30;

/**
 * Purchases of the whole installation that a bank still has to pay for. Old ones, for which no payment is expected any
 * more, are left out. In no order, so that one about which the payment provider cannot answer does not always stand
 * before the others. Index: `runs_due_payment`.
 */
export async function listPurchasesWithPaymentDue(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<(PurchaseKey & { readonly invoiceId: string })[]> {
  const { rows } = await sql<PurchaseKey & { invoiceId: string }>`
    select account_id::int as "accountId", run_id as "runId", result ->> 'invoiceId' as "invoiceId"
      from runs where status = 'success' and result ? 'due'
       and created_at > ${new Date(nowMs - PAYMENT_DUE_DAYS * 86_400_000)}
     order by random() limit ${limit}`.execute(database);
  return rows;
}

/** Gives the lease back; the purchase workflow is looked at again at `nextAtMs`. */
export async function releasePurchaseWorkflow(
  database: DatabaseOrTransaction,
  workflow: PurchaseKey & { readonly fence: number },
  nextAtMs: number,
  waitCount: number,
): Promise<void> {
  await sql`
    update runs set lease_until = null, next_at = ${new Date(nextAtMs)}, wait_count = ${waitCount}
     where account_id = ${workflow.accountId} and run_id = ${workflow.runId} and fence = ${workflow.fence}
       and status = 'pending'`.execute(database);
}

/** Moves a purchase in any state to manual review, with the reason. */
export async function sendPurchaseToReview(
  database: DatabaseOrTransaction,
  { accountId, runId }: PurchaseKey,
  reason: string,
): Promise<void> {
  await sql`
    update runs set review_reason = ${reason}, lease_until = null
     where account_id = ${accountId} and run_id = ${runId}`.execute(database);
}

/** Of all accounts: pending purchase workflows whose time has come and that no worker has, longest due first. */
export async function listDuePurchases(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<PurchaseKey[]> {
  const { rows } = await sql<PurchaseKey>`
    select account_id::int as "accountId", run_id as "runId" from runs
     where status = 'pending' and review_reason is null and next_at <= ${new Date(nowMs)}
       and ${IS_FREE}
     order by next_at limit ${limit}`.execute(database);
  return rows;
}
