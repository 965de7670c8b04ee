/** Wire shapes that several billing routes share (`account-conventions.md` §4.5–4.9). */
import type { PurchaseReversal, PurchaseResult } from '@sluice/domain/billing/purchase-content';
import type { Grant } from '@sluice/domain/billing/credit-ledger';
import { viewBalance } from '@sluice/domain/billing/credit-ledger';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { z } from 'zod';
import { idInPath } from '../http/fields.ts';

/** The demo's account with a plan and a card: `npm start` has it, and the examples of billing work in it. */
const EXAMPLE_ACCOUNT = DEMO.paidAccountId;
/** Its workspace. */
export const EXAMPLE_ENVIRONMENT = DEMO.paidEnvironmentId;

export const accountParams = z.object({
  account_id: idInPath.meta({ ...idInPath.meta(), requestExamples: [EXAMPLE_ACCOUNT] }),
});

export const moneyShape = z
  .object({ amount: z.int(), currency: z.string() })
  .meta({ id: 'Money', description: 'Whole minor units of a currency: 12000 usd is $120.00.' });

/** The amount that the client reports as shown to its customer. */
export const expectedMoney = z.strictObject({
  amount: z.int().min(0),
  currency: z.string().regex(/^[a-z]{3}$/, 'must be three lower-case letters'),
});

/** Additional to the shapes of the conventions, which may grow (`account-conventions.md` §3.3). */
export const receiptId = z.string().nullable().meta({
  description: 'Read it at `/settings/receipts/{id}`; null if there was no charge.',
});

const workflowStatus = z.enum(['pending', 'success', 'declined', 'refused', 'failed']);

/** Answer to the start of a purchase. */
export const purchaseStarted = z.object({ run_id: z.string(), status: z.literal('pending') });

/** The form in which clients name a purchase workflow. */
export const runIdText = z.string().regex(/^run_[\w-]{1,60}$/, 'must be a run_id');
export const runIdInPath = z.string().regex(/^[\w-]{1,64}$/);

export const poolShape = z
  .object({
    pool: z.enum(['monthly_allowance', 'goodwill', 'purchased']),
    granted: z.int(),
    used: z.int(),
    remaining: z.int(),
    resets_at: z.string().nullable(),
    next_expiry: z.object({ amount: z.int(), expires_at: z.string() }).nullable(),
  })
  .meta({ id: 'CreditPool' });

export const creditBalanceShape = z
  .object({
    credit_type: z.enum(['llm', 'builder']),
    total_available: z.int(),
    reserved: z.int(),
    pools: z.array(poolShape),
    as_of: z.string(),
  })
  .meta({ id: 'CreditBalance' });

const time = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(atMs).toISOString();

export function poolsToWire(grants: readonly Grant[], nowMs: number, hasAllowance: boolean) {
  return viewBalance(grants, nowMs, hasAllowance).pools.map((pool) => ({
    pool: pool.pool,
    granted: pool.granted,
    used: pool.used,
    remaining: pool.remaining,
    resets_at: time(pool.resetsAtMs),
    next_expiry: pool.nextExpiry && {
      amount: pool.nextExpiry.amount,
      expires_at: new Date(pool.nextExpiry.expiresAtMs).toISOString(),
    },
  }));
}

export function balanceToWire(
  type: 'llm' | 'builder',
  grants: readonly Grant[],
  nowMs: number,
  hasAllowance: boolean,
): z.infer<typeof creditBalanceShape> {
  const view = viewBalance(grants, nowMs, hasAllowance);
  return {
    credit_type: type,
    total_available: view.totalAvailable,
    reserved: view.reserved,
    pools: poolsToWire(grants, nowMs, hasAllowance),
    as_of: new Date(nowMs).toISOString(),
  };
}

const refundedShape = z
  .object({
    cause: z.enum(['refund', 'dispute']).meta({
      description: '`dispute`: the bank has decided for its customer.',
    }),
    amount: moneyShape,
    whole: z.boolean().meta({
      description: 'All that was charged; only then the credits were taken back.',
    }),
    credits_taken: z.int().meta({
      description: 'Unspent credits that were taken back; spent credits stay spent.',
    }),
    refunded_at: z.string(),
  })
  .meta({ id: 'Refund' });

export const workflowShape = z
  .object({
    run_id: z.string(),
    kind: z.enum(['addons', 'credits', 'inbox_previews', 'checkout']),
    rail: z.enum(['card', 'invoiced']),
    status: workflowStatus,
    message: z.string().nullable(),
    invoice_id: z.string().nullable(),
    charged: moneyShape.nullable(),
    due: moneyShape.nullable().meta({
      description:
        'The amount that a bank has accepted and has not paid yet; then it is `charged`.',
    }),
    receipt_id: receiptId,
    refunded: refundedShape
      .nullable()
      .meta({ description: 'The refund since then; `status` stays.' }),
    created_at: z.string(),
    completed_at: z.string().nullable(),
  })
  .meta({ id: 'Run' });

export const workflowToWire = (workflow: PurchaseWorkflow): z.infer<typeof workflowShape> => ({
  run_id: workflow.runId,
  kind: workflow.kind,
  rail: workflow.rail,
  status: workflow.status,
  message: workflow.message,
  invoice_id: workflow.invoiceId ?? workflow.result?.invoiceId ?? null,
  charged: chargedOf(workflow.result),
  due: workflow.result?.due ?? null,
  receipt_id: workflow.result?.receiptId ?? null,
  refunded: refundedToWire(workflow.result?.reversal),
  created_at: workflow.createdAt.toISOString(),
  completed_at: workflow.finishedAt?.toISOString() ?? null,
});

const refundedToWire = (
  reversal: PurchaseReversal | undefined,
): z.infer<typeof refundedShape> | null =>
  reversal === undefined
    ? null
    : {
        cause: reversal.cause,
        amount: reversal.amount,
        whole: reversal.isWhole,
        credits_taken: reversal.creditsTaken,
        refunded_at: new Date(reversal.atMs).toISOString(),
      };

export const chargedOf = (result: PurchaseResult | null) => result?.charged ?? null;

/** After how many seconds to ask again: at once at first, every five seconds later on. */
export function pollAfterSeconds(
  workflow: Pick<PurchaseWorkflow, 'createdAt'>,
  nowMs: number,
): number {
  return Math.min(5, 1 + Math.max(0, Math.floor((nowMs - workflow.createdAt.getTime()) / 10_000)));
}
