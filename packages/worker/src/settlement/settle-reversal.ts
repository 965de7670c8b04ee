/**
 * Settles a purchase whose price goes back to the customer.
 *
 * It was refunded at the payment provider, or lost to the customer's bank. The purchase keeps its ending and shows the
 * returned amount. Once that is all of it, the remaining credits are taken back. A part of it takes no credits: that is
 * how a price is corrected. Credit that its subscription has given back for unused time of that invoice is taken from
 * the customer's balance, as far as it is still there: spent credit stays spent.
 *
 * The payment is read as it is now, so events may come twice, late and in any order. The returned amount only grows. If
 * the payment provider reports less than we have acted on (a refund that failed), a person has to look. Before:
 * `settle-provider-events.ts`.
 */
import { recordChange } from '@sluice/database/changes/record-change';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { grantCredits, reverseGrant } from '@sluice/database/credits/credits';
import { findLatestCheckout } from '@sluice/database/billing/earlier-purchases';
import {
  lockPurchaseWorkflow,
  sendPurchaseToReview,
  updatePurchaseResult,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { findAccountOfCustomer } from '@sluice/database/billing/provider-customers';
import { allowanceOf, boughtAgainKey, CREDIT_KINDS } from '@sluice/domain/billing/allowance';
import type { PurchaseReversal, PurchaseResult } from '@sluice/domain/billing/purchase-content';
import type {
  PaymentProvider,
  ProviderInvoice,
  ProviderPayment,
} from '@sluice/billing-vendor/port/payment-provider';
import type { Logger } from '@sluice/platform/process/logger';
import { settleBankPayment } from './settle-bank-payment.ts';
import { settleInvoice } from './settle-invoice.ts';
import { takeBackExcessCredit } from './take-back-credit.ts';

export interface SettleReversalDeps {
  readonly database: Database;
  readonly provider: PaymentProvider;
  readonly now: () => number;
  readonly logger: Logger;
}

type About = Parameters<PaymentProvider['readPayment']>[0];

/** @returns false if it has to be looked at again. */
export async function settleReversal(
  deps: SettleReversalDeps,
  about: About,
  id: string,
): Promise<boolean> {
  const first = await settleOnce(deps, about, id, false);
  // Another worker may have read the payment provider later and written earlier.
  return first === 'less'
    ? (await settleOnce(deps, about, id, true)) !== 'again'
    : first !== 'again';
}

/** Undefined: there is no more to do. */
type Remaining = 'again' | 'less' | undefined;

async function settleOnce(
  deps: SettleReversalDeps,
  about: About,
  id: string,
  isSecondLook: boolean,
): Promise<Remaining> {
  const { database, provider, now, logger } = deps;
  const read = await provider.readPayment(about, id);
  if (read.outcome !== 'ok') return read.outcome === 'unknown' ? 'again' : undefined;
  const payment = read.value;
  if (!payment || payment.invoiceId === null) return undefined;
  const found = await provider.findInvoice(payment.invoiceId);
  if (found.outcome !== 'ok') return found.outcome === 'unknown' ? 'again' : undefined;
  const invoice = found.value;
  const { runId } = invoice;
  const accountId =
    invoice.accountId ?? (await findAccountOfCustomer(database, invoice.customerId));
  if (accountId === undefined) return undefined;
  // Also of a renewal, which no purchase of ours made.
  if (!(await takeBackExcessCredit(provider, invoice))) return 'again';
  if (runId === null) return undefined;
  return database.transaction().execute(async (transaction) => {
    const locked = await lockPurchaseWorkflow(transaction, { accountId, runId });
    // A copy of its invoice does not concern the purchase, also while it is under way.
    if (!locked || (locked.invoiceId !== null && locked.invoiceId !== invoice.invoiceId))
      return undefined;
    const workflow = await settleFirst(transaction, locked, invoice, now());
    if (workflow.status === 'pending') return 'again';
    const result = workflow.status === 'success' ? workflow.result : null;
    if (!result) return undefined;
    if ((workflow.invoiceId ?? result.invoiceId) !== invoice.invoiceId) return undefined;
    const before = result.reversal;
    const beforeAmount = before?.amount.amount ?? 0;
    if (payment.amountReturned > beforeAmount) {
      await writeDown(transaction, workflow, result, payment, now());
      return undefined;
    }
    if (payment.amountReturned === beforeAmount) return undefined;
    if (!isSecondLook) return 'less';
    await sendPurchaseToReview(
      transaction,
      workflow,
      `of its price ${beforeAmount} had gone back, and now only ${payment.amountReturned}: invoice ${invoice.invoiceId}`,
    );
    logger.error({ runId }, 'a purchase needs manual review: sluice purchases list');
    return undefined;
  });
}

/** If the payment itself is not written down yet, it is first. @param workflow - as the lock found it. */
async function settleFirst(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  invoice: ProviderInvoice,
  nowMs: number,
): Promise<PurchaseWorkflow> {
  if (workflow.status === 'pending' && workflow.content.type === 'purchase')
    await settleInvoice(transaction, workflow, invoice, nowMs);
  else if (workflow.result?.due ?? workflow.result?.givenUp)
    await settleBankPayment(transaction, workflow, invoice, nowMs);
  else return workflow;
  // It is there: the transaction has it locked.
  return (await lockPurchaseWorkflow(transaction, workflow)) as PurchaseWorkflow;
}

async function writeDown(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  result: PurchaseResult,
  payment: ProviderPayment,
  nowMs: number,
): Promise<void> {
  const before = result.reversal;
  const isWhole = payment.amountReturned >= payment.taken.amount;
  const reversal: PurchaseReversal = {
    cause: payment.cause,
    amount: { ...payment.taken, amount: payment.amountReturned },
    isWhole,
    // The whole comes back once: no more than that can.
    creditsTaken: isWhole ? await takeCreditsBack(transaction, workflow, nowMs) : 0,
    atMs: nowMs,
  };
  await updatePurchaseResult(transaction, workflow, { ...result, reversal });
  await recordChange(
    transaction,
    workflow.accountId,
    { actor: { type: 'system' }, runId: workflow.runId },
    {
      objectType: 'purchase',
      objectId: workflow.runId,
      before: { refunded: before ? before.amount : null },
      after: { refunded: reversal.amount },
    },
    nowMs,
  );
}

/** @returns how many, of all kinds. */
async function takeCreditsBack(
  transaction: Transaction,
  { accountId, runId, content, ...workflow }: PurchaseWorkflow,
  nowMs: number,
): Promise<number> {
  switch (content.type) {
    case 'purchase': {
      const { kind } = content.purchase;
      // A purchase that is paid has its invoice.
      const grantKey = `grant:invoice:${String(workflow.invoiceId)}`;
      return reverseGrant(transaction, { accountId, kind }, grantKey, nowMs);
    }
    case 'checkout': {
      // The months after the period that it paid for are paid by renewals.
      if ((workflow.result?.subscription?.currentPeriodEndMs ?? 0) <= nowMs) return 0;
      // Of a plan that another has taken the place of, the allowance is part of the other's.
      if ((await findLatestCheckout(transaction, accountId)) !== runId) return 0;
      let taken = 0;
      for (const kind of CREDIT_KINDS) {
        const allowance = allowanceOf(content.plan, kind, nowMs);
        if (!allowance) continue;
        const { key, endsAtMs: expiresAtMs } = allowance;
        // If this month's has not come yet it is recorded as 0, and comes no more.
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
