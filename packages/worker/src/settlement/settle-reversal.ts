/**
 * What follows when the price of a purchase goes back to the customer: refunded at the vendor, or lost to the
 * customer's bank. The purchase keeps its ending and shows what went back; once that is all of it, what is left of its
 * credits is taken back. Part of it takes nothing: that is how a price is corrected.
 *
 * The payment is read as it is now, so events may come twice, late and in any order. What went back only grows; where
 * the vendor says less than we have acted on (a refund that failed), a person has to look.
 *
 * Before: `settle-vendor-events.ts`.
 */
import { recordChange } from '@sluice/database/changes/audit-logs';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { grantCredits, reverseGrant } from '@sluice/database/credits/credits';
import {
  findLatestCheckout,
  lockRun,
  parkRun,
  updateRunResult,
  type Run,
} from '@sluice/database/billing/runs';
import { findAccountOfCustomer } from '@sluice/database/billing/vendor-customers';
import { allowanceOf, boughtAgainKey, CREDIT_KINDS } from '@sluice/domain/billing/allowance';
import type { PurchaseReversal, RunResult } from '@sluice/domain/billing/run-content';
import type { Vendor, VendorInvoice, VendorPayment } from '@sluice/billing-vendor/port/vendor';
import type { Logger } from '@sluice/platform/process/logger';
import { settleBankPayment } from './settle-bank-payment.ts';
import { settleInvoice } from './settle-invoice.ts';

export interface SettleReversalDeps {
  readonly database: Database;
  readonly vendor: Vendor;
  readonly now: () => number;
  readonly logger: Logger;
}

type About = Parameters<Vendor['readPayment']>[0];

/** @returns false where it has to be looked at again. */
export async function settleReversal(
  deps: SettleReversalDeps,
  about: About,
  id: string,
): Promise<boolean> {
  const first = await settleOnce(deps, about, id, false);
  // Another worker may have read the vendor later and written earlier.
  return first === 'less'
    ? (await settleOnce(deps, about, id, true)) !== 'again'
    : first !== 'again';
}

type Settled = 'done' | 'again' | 'less';

async function settleOnce(
  deps: SettleReversalDeps,
  about: About,
  id: string,
  isSecondLook: boolean,
): Promise<Settled> {
  const { database, vendor, now, logger } = deps;
  const read = await vendor.readPayment(about, id);
  if (read.outcome !== 'ok') return read.outcome === 'unknown' ? 'again' : 'done';
  const payment = read.value;
  if (!payment || payment.invoiceId === null) return 'done';
  const found = await vendor.findInvoice(payment.invoiceId);
  if (found.outcome !== 'ok') return found.outcome === 'unknown' ? 'again' : 'done';
  const invoice = found.value;
  const { runId } = invoice;
  const accountId =
    invoice.accountId ?? (await findAccountOfCustomer(database, invoice.customerId));
  // Not of a purchase of ours.
  if (accountId === undefined || runId === null) return 'done';
  return database.transaction().execute(async (transaction) => {
    const locked = await lockRun(transaction, { accountId, runId });
    // A copy of its invoice: what becomes of that is no matter of the purchase, also while it is under way.
    if (!locked || (locked.invoiceId !== null && locked.invoiceId !== invoice.invoiceId))
      return 'done';
    const run = await settleFirst(transaction, locked, invoice, now());
    if (run?.status === 'pending') return 'again';
    const { result } = run ?? {};
    if (!run || !result || run.status !== 'success') return 'done';
    if ((run.invoiceId ?? result.invoiceId) !== invoice.invoiceId) return 'done';
    const before = result.reversal;
    const beforeAmount = before?.amount.amount ?? 0;
    if (payment.amountReturned === beforeAmount) return 'done';
    if (payment.amountReturned < beforeAmount) {
      if (!isSecondLook) return 'less';
      await parkRun(
        transaction,
        run,
        `of its price ${beforeAmount} had gone back, and now only ${payment.amountReturned}: invoice ${invoice.invoiceId}`,
      );
      logger.error({ runId }, 'a run waits for a person');
      return 'done';
    }
    await writeDown(transaction, run, result, payment, now());
    return 'done';
  });
}

/** Where the payment itself is not written down yet, it is first. @param run - as the lock found it. */
async function settleFirst(
  transaction: Transaction,
  run: Run,
  invoice: VendorInvoice,
  nowMs: number,
): Promise<Run | undefined> {
  if (run.status === 'pending' && run.content.type === 'purchase')
    await settleInvoice(transaction, run, invoice, nowMs);
  else if (run.result?.due ?? run.result?.givenUp)
    await settleBankPayment(transaction, run, invoice, nowMs);
  else return run;
  return lockRun(transaction, run);
}

async function writeDown(
  transaction: Transaction,
  run: Run,
  result: RunResult,
  payment: VendorPayment,
  nowMs: number,
): Promise<void> {
  const before = result.reversal;
  const isWhole = payment.amountReturned >= payment.taken.amount;
  const reversal: PurchaseReversal = {
    cause: payment.cause,
    amount: { ...payment.taken, amount: payment.amountReturned },
    isWhole,
    creditsTaken:
      before?.isWhole === true || !isWhole
        ? (before?.creditsTaken ?? 0)
        : await takeCreditsBack(transaction, run, nowMs),
    atMs: nowMs,
  };
  await updateRunResult(transaction, run, { ...result, reversal });
  await recordChange(
    transaction,
    run.accountId,
    { actor: { type: 'system' }, runId: run.runId },
    {
      objectType: 'purchase',
      objectId: run.runId,
      before: { refunded: before ? before.amount : null },
      after: { refunded: reversal.amount },
    },
    nowMs,
  );
}

/** @returns how many, of all kinds. */
async function takeCreditsBack(
  transaction: Transaction,
  { accountId, runId, content, ...run }: Run,
  nowMs: number,
): Promise<number> {
  switch (content.type) {
    case 'purchase': {
      const { kind } = content.purchase;
      const grantKey = `grant:invoice:${run.invoiceId ?? ''}`;
      return reverseGrant(transaction, { accountId, kind }, grantKey, nowMs);
    }
    case 'checkout': {
      // The months after the period that it paid for are paid by renewals.
      if ((run.result?.subscription?.currentPeriodEndMs ?? 0) <= nowMs) return 0;
      // Of a plan that another has taken the place of, the allowance is part of the other's.
      if ((await findLatestCheckout(transaction, accountId)) !== runId) return 0;
      let taken = 0;
      for (const kind of CREDIT_KINDS) {
        const allowance = allowanceOf(content.plan, kind, nowMs);
        if (!allowance) continue;
        const { key, endsAtMs: expiresAtMs } = allowance;
        // Where this month's has not come yet it is noted as nothing, and comes no more.
        const none = { pool: 'monthly_allowance', amount: 0, expiresAtMs, key } as const;
        await grantCredits(transaction, { accountId, kind }, none, nowMs);
        for (const grantKey of [key, boughtAgainKey(key, runId)])
          taken += await reverseGrant(transaction, { accountId, kind }, grantKey, nowMs);
      }
      return taken;
    }
    case 'addons':
      return 0;
  }
}
