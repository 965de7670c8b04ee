/**
 * Starts a purchase: one transaction that writes the purchase workflow and its audit entry, then a wake-up. A start
 * that finds the lane taken joins the purchase there or is refused (`domain/src/billing/purchase-workflow.ts`). The
 * database's unique index decides, so any number may ask at the same moment, in any process.
 *
 * Purchases by card do not exclude others, but the same one of credits that is not paid yet is joined, and so is one
 * that the customer's credit has paid within the last two minutes: a double click, or a call whose answer was lost,
 * buys once. Starts of one account wait for each other for that.
 *
 * A wake-up that is lost is made good by the workers' reconcile loop. After:
 * `worker/src/purchases/advance-purchase-workflow.ts`.
 */
import { recordChange, type ChangeOrigin } from '@sluice/database/changes/record-change';
import { holdAccountToBuy } from '@sluice/database/billing/card-changes';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { extendPurchase, findSamePurchase } from '@sluice/database/billing/same-purchases';
import {
  countUnpaidCardPurchases,
  findPendingPurchase,
  findPurchaseWorkflow,
  insertPurchaseWorkflow,
  type PurchaseWorkflow,
  type PurchaseKey,
} from '@sluice/database/billing/purchase-workflows';
import { listPurchaseSteps, type PurchaseStep } from '@sluice/database/billing/purchase-steps';
import { transactOnce } from '@sluice/database/changes/transact-once';
import {
  fingerprintOf,
  judgeStart,
  laneOf,
  type PaymentMethodType,
  type PurchaseKind,
} from '@sluice/domain/billing/purchase-workflow';
import type { PurchaseContent } from '@sluice/domain/billing/purchase-content';
import type { StartRunEffects } from './billing-effects.ts';
import { setTimeout as sleep } from 'node:timers/promises';

export interface PurchaseRequest {
  readonly accountId: number;
  readonly kind: PurchaseKind;
  readonly rail: PaymentMethodType;
  readonly content: PurchaseContent;
  /** Values that make two requests the same purchase. */
  readonly sameness: Readonly<Record<string, unknown>>;
  readonly origin: ChangeOrigin;
}

export type StartOutcome =
  | { readonly outcome: 'created' | 'joined'; readonly workflow: PurchaseWorkflow }
  | { readonly outcome: 'in-flight'; readonly workflow: PurchaseWorkflow }
  /** The card on file is being changed; there will be room soon. */
  | { readonly outcome: 'card-changing' }
  /** Too many card purchases of the account wait to be paid. */
  | { readonly outcome: 'too-many-unpaid' }
  /** The account was closed while the call was under way. */
  | { readonly outcome: 'closed' };

/**
 * Card purchases of an account that wait to be paid. Each is a checkout at the payment provider, and the address of its
 * form. They are counted with the account held alone, so starts at the same moment do not exceed it.
 */
export const UNPAID_COUNT_MAX = 20;
/** An unpaid purchase ends so long after its time at most. */
const ENDING_MS_MAX = 3_600_000;

/** The purchase in the lane may end between our insert and our look at it; then there is capacity for ours. */
const TRIES_MAX = 5;

/** The same call with an Idempotency-Key gets the same run, also once that has ended. */
export async function startPurchaseWorkflow(
  effects: StartRunEffects,
  request: PurchaseRequest,
): Promise<StartOutcome> {
  const { call, ...origin } = request.origin;
  const isStarted = (started: StartOutcome | undefined): boolean =>
    started?.outcome === 'created' || started?.outcome === 'joined';
  for (let attempt = 1; attempt <= TRIES_MAX; attempt++) {
    const started = await transactOnce(effects.database, call, isStarted, (transaction) =>
      createOrJoin(transaction, effects, { ...request, origin }),
    );
    if (started?.outcome === 'created')
      await effects.wakePurchaseWorkflow(started.workflow).catch(() => undefined);
    if (started) return started;
  }
  throw new Error(
    `the exclusion group ${laneOf(request.kind, request.rail)} of an account is never free`,
  );
}

/** Undefined if the purchase that had the lane has ended meanwhile. */
async function createOrJoin(
  transaction: Transaction,
  effects: StartRunEffects,
  request: PurchaseRequest,
): Promise<StartOutcome | undefined> {
  const { accountId, kind, rail, origin } = request;
  const lane = laneOf(kind, rail);
  const fingerprint = fingerprintOf(kind, request.sameness);
  const nowMs = effects.now();
  const runId = `run_${effects.newId()}`;
  const isOfCredits = request.content.type === 'purchase';
  // Alone: of two starts at the same moment the second sees the first, as the same purchase and in the count.
  const isAlone = isOfCredits || lane === 'card';
  const state = await holdAccountToBuy(transaction, accountId, isAlone);
  if (state === 'closed') return { outcome: 'closed' };
  if (state === 'card-changing' && lane !== 'card') return { outcome: 'card-changing' };
  const expiresAtMs = lane === 'card' ? nowMs + effects.cardPaymentMs : null;
  const same = isOfCredits
    ? await findSamePurchase(transaction, accountId, { lane, fingerprint }, nowMs)
    : undefined;
  if (same) {
    if (expiresAtMs !== null) await extendPurchase(transaction, same, expiresAtMs);
    return { outcome: 'joined', workflow: same };
  }
  if (lane === 'card') {
    const sinceMs = nowMs - effects.cardPaymentMs - ENDING_MS_MAX;
    const count = await countUnpaidCardPurchases(transaction, accountId, sinceMs, UNPAID_COUNT_MAX);
    if (count >= UNPAID_COUNT_MAX) return { outcome: 'too-many-unpaid' };
  }
  const workflow = await insertPurchaseWorkflow(
    transaction,
    {
      accountId,
      runId,
      lane,
      kind,
      rail,
      fingerprint,
      content: request.content,
      origin,
      expiresAtMs,
    },
    nowMs,
  );
  if (!workflow) {
    const pending = await findPendingPurchase(transaction, accountId, lane);
    if (!pending) return undefined;
    const judged = judgeStart(lane, pending.fingerprint, fingerprint);
    return { outcome: judged === 'join' ? 'joined' : 'in-flight', workflow: pending };
  }
  await recordChange(
    transaction,
    accountId,
    { ...origin, runId },
    {
      objectType: 'purchase',
      objectId: runId,
      before: null,
      after: { kind, rail, status: 'pending', content: request.sameness },
    },
    nowMs,
  );
  return { outcome: 'created', workflow };
}

const WAIT_MS_MIN = 20;
const WAIT_MS_MAX = 250;

export interface PurchaseState {
  readonly workflow: PurchaseWorkflow;
  readonly steps: readonly PurchaseStep[];
}

/** Reads a purchase workflow repeatedly until it is as wanted, or the time is over. */
export async function waitForPurchaseWorkflow(
  database: Database,
  key: PurchaseKey,
  waitMs: number,
  isWanted: (state: PurchaseState) => boolean,
): Promise<PurchaseState | undefined> {
  const deadlineMs = performance.now() + waitMs;
  for (let pauseMs = WAIT_MS_MIN; ; pauseMs = Math.min(pauseMs * 1.5, WAIT_MS_MAX)) {
    const workflow = await findPurchaseWorkflow(database, key.accountId, key.runId);
    if (!workflow) return undefined;
    const state = { workflow, steps: await listPurchaseSteps(database, key) };
    if (isWanted(state) || performance.now() >= deadlineMs) return state;
    await sleep(Math.min(pauseMs, Math.max(1, deadlineMs - performance.now())));
  }
}
