/**
 * Ends a purchase workflow, in one transaction with all its records: the purchase workflow itself, the receipt of the
 * charge (`domain/src/billing/purchase-receipt.ts`), the event for the account's webhooks
 * (`domain/src/billing/purchase-event.ts`) and the entry in its audit log.
 */
import { findBillingAccount } from '@sluice/database/billing/account-plans';
import { recordChange } from '@sluice/database/changes/record-change';
import type { Transaction } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listEnvironmentIds } from '@sluice/database/accounts/environments';
import { insertReceipt } from '@sluice/database/billing/receipts';
import {
  finishPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { purchaseEndedEvent } from '@sluice/domain/billing/purchase-event';
import { purchaseReceipt, type Receipt } from '@sluice/domain/billing/purchase-receipt';
import type { PurchaseEnding } from '@sluice/domain/billing/purchase-workflow';
import type { PurchaseResult } from '@sluice/domain/billing/purchase-content';

export interface Ending {
  readonly status: PurchaseEnding;
  /** Safe to show the customer. */
  readonly message: string | null;
  readonly result: PurchaseResult;
  /** The plan that it has brought, and the one before. */
  readonly plan?: { readonly before: string | undefined; readonly after: string };
}

/**
 * Call with the purchase workflow locked, and last: lanes and the audit log are locked last. An ending is final, so a
 * call for an ended purchase workflow has no effect.
 *
 * The lanes are woken by the reconcile loop of lanes, within a second.
 */
export async function recordEnding(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  ending: Ending,
  nowMs: number,
): Promise<void> {
  const receipt = await receiptOf(transaction, workflow, ending, nowMs);
  const result = receipt ? { ...ending.result, receiptId: receipt.receiptId } : ending.result;
  if (!(await finishPurchaseWorkflow(transaction, workflow, { ...ending, result }, nowMs))) return;
  if (receipt) await insertReceipt(transaction, workflow.accountId, receipt);
  const environmentIds = await listEnvironmentIds(transaction, workflow.accountId);
  await appendDeliveries(
    transaction,
    environmentIds.map((environmentId) =>
      purchaseEndedEvent({ ...workflow, ...ending }, environmentId, nowMs),
    ),
  );
  const origin = { actor: { type: 'system' }, runId: workflow.runId } as const;
  const purchase = { kind: workflow.kind, rail: workflow.rail };
  await recordChange(
    transaction,
    workflow.accountId,
    origin,
    {
      objectType: 'purchase',
      objectId: workflow.runId,
      before: { ...purchase, status: workflow.status },
      after: { ...purchase, status: ending.status },
    },
    nowMs,
  );
  if (!ending.plan) return;
  await recordChange(
    transaction,
    workflow.accountId,
    origin,
    {
      objectType: 'account',
      objectId: workflow.accountId,
      before: { plan: ending.plan.before },
      after: { plan: ending.plan.after },
    },
    nowMs,
  );
}

/** Only for a purchase that took money. */
export async function receiptOf(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  { status, result }: Pick<Ending, 'status' | 'result'>,
  nowMs: number,
): Promise<Receipt | undefined> {
  const { charged } = result;
  if (status !== 'success' || charged === null || charged.amount <= 0) return undefined;
  const account = await findBillingAccount(transaction, workflow.accountId);
  return account && purchaseReceipt(workflow, result, charged, account, nowMs);
}
