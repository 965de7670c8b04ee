/**
 * Charges runs of inbox previews to the credit pools, and refunds them.
 *
 * Each is one transaction with the run's row, the days that it counts to and the audit entry. A job is charged once and
 * refunded once, however often it is asked for, also at the same time: the fact's key in the ledger decides. The same
 * call again gets the first answer; a call with other values for the same job is a conflict.
 *
 * Locks in this order: the account's watermark, its credits, its audit chain.
 */
import { recordChange, type ChangeOrigin } from '@sluice/database/changes/record-change';
import type { Database } from '@sluice/database/connection/connection';
import { debitCredits, refundCredits } from '@sluice/database/credits/credits';
import {
  findPreviewRun,
  insertPreviewRun,
  refundPreviewRun,
  type PreviewRun,
} from '@sluice/database/credits/inbox-preview-runs';
import { transactOnce } from '@sluice/database/changes/transact-once';
import { holdUsageDays } from '@sluice/database/credits/usage-watermarks';
import { allowanceOf } from '@sluice/domain/billing/allowance';
import type { Plan } from '@sluice/domain/billing/catalogue';
import { AppError } from '@sluice/domain/values/errors';
import { addDays, utcDayOf } from '@sluice/domain/values/utc-day';

export interface RecordPreviewRunEffects {
  readonly database: Database;
  readonly now: () => number;
}

export interface PreviewRunRequest extends Pick<
  PreviewRun,
  'previewJobId' | 'environmentId' | 'userId' | 'quantity'
> {
  readonly accountId: number;
  /** Whether the plan's monthly allowance may be spent. */
  readonly hasAllowance: boolean;
  /** As it is sold; undefined if the catalogue does not know it (any more), or it is not paid yet. */
  readonly plan?: Plan | undefined;
  readonly origin: ChangeOrigin;
}

export type RecordOutcome =
  | { readonly outcome: 'recorded' | 'repeated'; readonly run: PreviewRun }
  /** The job was recorded with another workspace, user or quantity. */
  | { readonly outcome: 'conflict'; readonly run: PreviewRun }
  | { readonly outcome: 'insufficient'; readonly available: number };

/** The name of the debit in the ledger. Encoded, because our own parts follow a colon. */
const debitKeyOf = (previewJobId: string): string => `preview:${encodeURIComponent(previewJobId)}`;

/** Takes the run's whole quantity out of the account's credits, or refuses. */
export function recordPreviewRun(
  { database, now }: RecordPreviewRunEffects,
  request: PreviewRunRequest,
): Promise<RecordOutcome> {
  const { accountId, previewJobId, environmentId, userId, quantity, hasAllowance, plan } = request;
  const account = { accountId, kind: 'inbox_previews' } as const;
  return transactOnce(database, request.origin.call, isRecorded, async (transaction) => {
    const closedThrough = await holdUsageDays(transaction, accountId, addDays(utcDayOf(now()), -1));
    // Not earlier: the day must be read while it cannot be closed.
    const nowMs = now();
    const allowance = plan && hasAllowance ? allowanceOf(plan, 'inbox_previews', nowMs) : undefined;
    const debit = { amount: quantity, key: debitKeyOf(previewJobId), hasAllowance, allowance };
    const debited = await debitCredits(transaction, account, debit, nowMs);
    if (debited.outcome === 'insufficient') return debited;
    if (debited.outcome === 'repeated') {
      const run = await findPreviewRun(transaction, accountId, previewJobId);
      if (!run) throw new AppError('BUG', 'a debit of a preview run has no run');
      const isSame =
        run.environmentId === environmentId && run.userId === userId && run.quantity === quantity;
      return { outcome: isSame ? 'repeated' : 'conflict', run };
    }
    const today = utcDayOf(nowMs);
    const run: PreviewRun = {
      previewJobId,
      // A clock that is late must not write into a day that is closed.
      day: today > closedThrough ? today : addDays(closedThrough, 1),
      environmentId,
      userId,
      quantity,
      refunded: 0,
      recordedAt: new Date(nowMs),
    };
    await insertPreviewRun(transaction, accountId, run);
    const after = { user_id: userId, quantity, refunded: 0 };
    const change = { ...audited(run), before: null, after };
    await recordChange(transaction, accountId, request.origin, change, nowMs);
    return { outcome: 'recorded', run };
  });
}

export interface PreviewRefundRequest {
  readonly accountId: number;
  readonly previewJobId: string;
  /** Undefined: all of it. */
  readonly quantity: number | undefined;
  readonly origin: ChangeOrigin;
}

export type RefundOutcome =
  | { readonly outcome: 'refunded' | 'repeated'; readonly run: PreviewRun }
  /** The job was refunded with another quantity. */
  | { readonly outcome: 'conflict'; readonly run: PreviewRun }
  | { readonly outcome: 'too-much'; readonly left: number }
  | { readonly outcome: 'missing' };

/** Gives back the credits of a run, or a part of them, to the grants that they came from. */
export function refundRecordedRun(
  { database, now }: RecordPreviewRunEffects,
  { accountId, previewJobId, quantity, origin }: PreviewRefundRequest,
): Promise<RefundOutcome> {
  const account = { accountId, kind: 'inbox_previews' } as const;
  return transactOnce(database, origin.call, isRefunded, async (transaction) => {
    const closedThrough = await holdUsageDays(transaction, accountId, addDays(utcDayOf(now()), -1));
    const nowMs = now();
    const run = await findPreviewRun(transaction, accountId, previewJobId);
    if (!run) return { outcome: 'missing' };
    const amount = quantity ?? run.quantity;
    const debitKey = debitKeyOf(previewJobId);
    const refund = { amount, debitKey, key: `${debitKey}:refund:1` };
    const refunded = await refundCredits(transaction, account, refund, nowMs);
    if (refunded.outcome === 'too-much') return refunded;
    if (refunded.outcome === 'repeated')
      return { outcome: run.refunded === amount ? 'repeated' : 'conflict', run };
    await refundPreviewRun(transaction, accountId, run, amount, closedThrough);
    const change = { ...audited(run), before: { refunded: 0 }, after: { refunded: amount } };
    await recordChange(transaction, accountId, origin, change, nowMs);
    return { outcome: 'refunded', run: { ...run, refunded: amount } };
  });
}

const isRecorded = ({ outcome }: RecordOutcome): boolean => outcome === 'recorded';
const isRefunded = ({ outcome }: RefundOutcome): boolean => outcome === 'refunded';

const audited = (run: PreviewRun) => ({
  objectType: 'inbox_preview_run' as const,
  objectId: run.previewJobId,
  environmentId: run.environmentId,
});
