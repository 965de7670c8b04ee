/**
 * Ends a run, in one transaction with everything that says so: the run itself, the receipt of what it
 * took (`domain/src/billing/purchase-receipt.ts`), the event for the account's webhooks
 * (`domain/src/billing/purchase-event.ts`) and the entry in its audit log.
 */
import { findBillingAccount } from '@sluice/database/billing/account-plans';
import { recordChange } from '@sluice/database/changes/audit-logs';
import type { Transaction } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listEnvironmentIds } from '@sluice/database/accounts/environments';
import { insertReceipt } from '@sluice/database/billing/receipts';
import { finishRun, type Run } from '@sluice/database/billing/runs';
import { purchaseEndedEvent } from '@sluice/domain/billing/purchase-event';
import { purchaseReceipt, type Receipt } from '@sluice/domain/billing/purchase-receipt';
import type { RunEnding } from '@sluice/domain/billing/run';
import type { RunResult } from '@sluice/domain/billing/run-content';

export interface Ending {
  readonly status: RunEnding;
  /** Safe to show the customer. */
  readonly message: string | null;
  readonly result: RunResult;
  /** The plan that it has brought, and the one before. */
  readonly plan?: { readonly before: string | undefined; readonly after: string };
}

/**
 * Call with the run locked, and last: lanes and the audit log are locked last. An ending is final, so nothing happens
 * where the run has one.
 *
 * The lanes are woken by the sweep of lanes, within a second.
 */
export async function recordEnding(
  transaction: Transaction,
  run: Run,
  ending: Ending,
  nowMs: number,
): Promise<void> {
  const receipt = await receiptOf(transaction, run, ending, nowMs);
  const result = receipt ? { ...ending.result, receiptId: receipt.receiptId } : ending.result;
  if (!(await finishRun(transaction, run, { ...ending, result }, nowMs))) return;
  if (receipt) await insertReceipt(transaction, run.accountId, receipt);
  const environmentIds = await listEnvironmentIds(transaction, run.accountId);
  await appendDeliveries(
    transaction,
    environmentIds.map((environmentId) =>
      purchaseEndedEvent({ ...run, ...ending }, environmentId, nowMs),
    ),
  );
  const origin = { actor: { type: 'system' }, runId: run.runId } as const;
  const purchase = { kind: run.kind, rail: run.rail };
  await recordChange(
    transaction,
    run.accountId,
    origin,
    {
      objectType: 'purchase',
      objectId: run.runId,
      before: { ...purchase, status: run.status },
      after: { ...purchase, status: ending.status },
    },
    nowMs,
  );
  if (!ending.plan) return;
  await recordChange(
    transaction,
    run.accountId,
    origin,
    {
      objectType: 'account',
      objectId: run.accountId,
      before: { plan: ending.plan.before },
      after: { plan: ending.plan.after },
    },
    nowMs,
  );
}

/** Only for what took money. */
export async function receiptOf(
  transaction: Transaction,
  run: Run,
  { status, result }: Pick<Ending, 'status' | 'result'>,
  nowMs: number,
): Promise<Receipt | undefined> {
  const { charged } = result;
  if (status !== 'success' || charged === null || charged.amount <= 0) return undefined;
  const account = await findBillingAccount(transaction, run.accountId);
  return account && purchaseReceipt(run, result, charged, account, nowMs);
}
