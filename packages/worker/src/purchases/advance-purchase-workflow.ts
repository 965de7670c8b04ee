/**
 * Takes one purchase workflow as far as it will go now.
 *
 * It claims it, does the step that `domain/src/billing/workflow-steps.ts` names, records the result together with its
 * effect on the account, and goes on to the next step.
 *
 * A crash at any point costs only time: before the intent no call was made, and after it the same key is used again. A
 * step's outcome is written in one transaction with its effects. Two workers on one purchase workflow: the second
 * claim's number fences the first one off. The API writes the content, so its price is compared with the catalogue
 * before the first charge.
 *
 * Before: `api/src/billing/start-purchase-workflow.ts` (through `platform/src/queue/queue.ts`), `purchases.ts`. After:
 * `settle-invoice.ts`, `billing-vendor/src/port/payment-provider.ts`.
 */
import type { PaymentProvider, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import { recordCardOnFile } from '@sluice/database/billing/card-changes';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { listBoughtAddons, listBoughtPlanPrices } from '@sluice/database/billing/earlier-purchases';
import {
  claimPurchaseWorkflow,
  lockPurchaseWorkflow,
  sendPurchaseToReview,
  releasePurchaseWorkflow,
  updatePurchaseInvoice,
  type PurchaseWorkflow,
  type PurchaseKey,
} from '@sluice/database/billing/purchase-workflows';
import {
  findProviderCustomer,
  insertProviderCustomer,
} from '@sluice/database/billing/provider-customers';
import {
  insertStepIntent,
  listPurchaseSteps,
  updateStep,
  type PurchaseStep,
} from '@sluice/database/billing/purchase-steps';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import {
  idempotencyKey,
  INTENT_REPLAY_MS_MAX,
  nextMove,
  retryDelayMs,
} from '@sluice/domain/billing/workflow-steps';
import type { StepName } from '@sluice/domain/billing/workflow-steps';
import type { Logger } from '@sluice/platform/process/logger';
import { endPurchaseWorkflow, endPurchaseByStep } from '../settlement/end-purchase-workflow.ts';
import { STEPS } from './purchase-steps.ts';
import {
  knownOf,
  type Step,
  type StepContext,
  type StepInput,
  type StepOutput,
  type StepResult,
} from '../settlement/purchase-step.ts';
import { failureOf } from './invoice-steps.ts';
import { keepPurchaseLease } from './purchase-lease.ts';
import { refuseUnsold } from '../settlement/refuse-unsold.ts';
import { settleInvoice } from '../settlement/settle-invoice.ts';

export interface AdvancePurchaseWorkflowDeps {
  readonly database: Database;
  readonly provider: PaymentProvider;
  readonly catalogue: Catalogue;
  /** How long a purchase workflow waits for a worker that died: the lease is renewed while it lives. */
  readonly leaseMs: number;
  readonly now: () => number;
  readonly logger: Logger;
  /** Tests end a worker here, as a crash would. */
  readonly onPoint?: (point: CrashPoint) => Promise<void>;
}

/** The moments between which a crash makes a difference. */
export type CrashPoint =
  `${'before-intent' | 'after-intent' | 'after-vendor' | 'after-record'}:${StepName}`;

export type AdvanceOutcome =
  | 'ended'
  | 'waiting'
  /** Another worker has it, or it has ended. */
  | 'overtaken'
  | 'parked';

/** How often an invoice whose payment is waited for is looked at, in case the payment provider's event was lost. */
const PAYMENT_CHECK_MS = 60_000;

export async function advancePurchaseWorkflow(
  deps: AdvancePurchaseWorkflowDeps,
  key: PurchaseKey,
): Promise<AdvanceOutcome> {
  const claimed = await claimPurchaseWorkflow(deps.database, key, deps.leaseMs);
  if (!claimed) return 'overtaken';
  const endRenewals = keepPurchaseLease(deps, claimed);
  try {
    return await advance(deps, claimed);
  } finally {
    endRenewals();
  }
}

async function advance(
  deps: AdvancePurchaseWorkflowDeps,
  claimed: PurchaseWorkflow,
): Promise<AdvanceOutcome> {
  let workflow = claimed;
  for (;;) {
    const steps = await listPurchaseSteps(deps.database, workflow);
    const nowMs = deps.now();
    const refused = await refuseUnsold(deps, workflow, steps);
    if (refused) return refused;
    const isExpired = workflow.expiresAt !== null && workflow.expiresAt.getTime() <= nowMs;
    const next = nextMove({ kind: workflow.kind, rail: workflow.rail, isExpired }, steps);
    switch (next.move) {
      case 'park':
        await sendPurchaseToReview(
          deps.database,
          workflow,
          `the step ${next.step} was tried too often`,
        );
        deps.logger.error(
          { runId: workflow.runId, step: next.step },
          'a purchase needs manual review: sluice purchases list',
        );
        return 'parked';
      case 'wait-for-payment': {
        const outcome = await waitForPayment(deps, workflow, steps);
        if (outcome !== 'advanced') return outcome;
        break;
      }
      case 'finish':
        return endPurchaseWorkflow(deps, workflow, steps, next.status);
      case 'do': {
        const outcome = await doStep(deps, workflow, steps, next.step, next.attempt);
        if (outcome !== 'advanced') return outcome;
        // The payment provider has done the step, or has refused it: the waits begin anew.
        workflow = { ...workflow, waitCount: 0 };
      }
    }
  }
}

async function doStep(
  deps: AdvancePurchaseWorkflowDeps,
  workflow: PurchaseWorkflow,
  steps: readonly PurchaseStep[],
  name: StepName,
  attempt: number,
): Promise<AdvanceOutcome | 'advanced'> {
  const { database, provider, catalogue } = deps;
  const step: Step = STEPS[name];
  const nowMs = deps.now();
  // An account has one customer, so two purchase workflows of it use one key.
  const key =
    name === 'customer'
      ? idempotencyKey(`account_${workflow.accountId}`, name, attempt)
      : idempotencyKey(workflow.runId, name, attempt);
  const base = {
    provider,
    catalogue,
    workflow,
    known: knownOf(steps),
    key,
    nowMs,
    boughtPlanPriceIds:
      name === 'subscribe' ? await listBoughtPlanPrices(database, workflow.accountId) : [],
    boughtAddons: name === 'inspect' ? await listBoughtAddons(database, workflow.accountId) : [],
    existingCustomerId:
      name === 'customer' ? await findProviderCustomer(database, workflow.accountId) : undefined,
  };
  const hasIntent = steps.some((each) => each.step === name && each.attempt === attempt);
  let input: StepInput = {};
  if (!hasIntent && step.prepare) {
    const prepared = await step.prepare(base);
    if (prepared.outcome === 'unknown') return waitLonger(deps, workflow, name, prepared.reason);
    // Kept with the intent, so that a worker that takes over does not ask for an impossible step.
    input = prepared.outcome === 'ok' ? prepared.value : { refusal: refusalOf(prepared) };
  }
  await deps.onPoint?.(`before-intent:${name}`);
  const intent = await insertStepIntent(
    database,
    workflow,
    { step: name, attempt, idempotencyKey: key, input },
    deps.leaseMs,
    nowMs,
  );
  if (!intent) return 'overtaken';
  await deps.onPoint?.(`after-intent:${name}`);
  const context: StepContext = { ...base, input: intent.input as StepInput };

  const isOld = nowMs - intent.startedAt.getTime() > INTENT_REPLAY_MS_MAX;
  let result: StepResult<StepOutput | null>;
  if (context.input.refusal !== undefined)
    result = { outcome: 'refused', code: context.input.refusal };
  else if (isOld)
    result = { outcome: 'unknown', reason: 'the key may be forgotten', isFinal: true };
  else result = await step.perform(context);
  // The objects at the payment provider prove more than an answer that cannot change, or that refuses the call's form.
  const refusal = result.outcome === 'refused' ? result : undefined;
  if (refusal || (result.outcome === 'unknown' && result.isFinal)) {
    const found = await step.lookUp(context);
    result = refusal && found.outcome === 'ok' && found.value === null ? refusal : found;
  }
  await deps.onPoint?.(`after-vendor:${name}`);
  if (result.outcome === 'unknown') return waitLonger(deps, workflow, name, result.reason);
  const settled = await recordStep(deps, workflow, { step: name, attempt }, result, base.known);
  await deps.onPoint?.(`after-record:${name}`);
  // Attempts are few, and an outage outlasts as many calls: the next one waits like an answer that is not known.
  const hadNoEffect = result.outcome === 'ok' && result.value === null;
  return hadNoEffect && settled === 'advanced'
    ? waitLonger(deps, workflow, name, `attempt ${attempt} had no effect`)
    : settled;
}

const refusalOf = (
  result: Extract<ProviderResult<unknown>, { outcome: 'declined' | 'refused' }>,
): string => (result.outcome === 'refused' ? result.code : (result.declineCode ?? 'declined'));

type KnownStepResult = Exclude<StepResult<StepOutput | null>, { outcome: 'unknown' }>;

/** The second transaction: the result of the step together with its effects. */
async function recordStep(
  deps: AdvancePurchaseWorkflowDeps,
  workflow: PurchaseWorkflow,
  step: { readonly step: StepName; readonly attempt: number },
  result: KnownStepResult,
  known: StepOutput,
): Promise<AdvanceOutcome | 'advanced'> {
  const nowMs = deps.now();
  return deps.database.transaction().execute(async (transaction) => {
    const locked = await lockPurchaseWorkflow(transaction, workflow);
    if (!locked || locked.status !== 'pending' || locked.fence !== workflow.fence)
      return 'overtaken';
    if (result.outcome !== 'ok' || result.value === null) {
      await updateStep(transaction, workflow, step, 'intent', unsuccessful(result), nowMs);
      await recordCard(transaction, workflow, result.cardOnFile, nowMs);
      return 'advanced';
    }
    const { customerId: made } = result.value;
    const output =
      step.step === 'customer' && made !== undefined
        ? { customerId: await insertProviderCustomer(transaction, workflow.accountId, made, nowMs) }
        : result.value;
    await updateStep(transaction, workflow, step, 'intent', { state: 'done', output }, nowMs);
    if (step.step === 'invoice' && output.invoiceId !== undefined)
      await updatePurchaseInvoice(transaction, workflow, output.invoiceId);
    // Credit of the customer at the payment provider may pay the invoice as it is finalized.
    const isPaidAtOnce = step.step === 'finalize' && output.invoiceStatus === 'paid';
    if (step.step === 'pay' || step.step === 'void' || isPaidAtOnce) {
      const {
        invoiceId = '',
        invoiceStatus = 'open',
        total = { amount: 0, currency: '' },
        amountDue,
      } = output;
      const fate = {
        invoiceId,
        status: invoiceStatus,
        total,
        ...(amountDue !== undefined && { amountDue }),
      };
      const settlement = await settleInvoice(transaction, locked, fate, nowMs);
      if (settlement === 'parked') return 'parked';
      return settlement === 'unchanged' ? 'advanced' : 'ended';
    }
    const all = { ...known, ...output };
    const ended = await endPurchaseByStep(transaction, locked, step.step, all, nowMs);
    await recordCard(transaction, workflow, result.cardOnFile, nowMs);
    return ended;
  });
}

/** The stored record of a step that did not succeed, or that provably had no effect. */
function unsuccessful(result: KnownStepResult) {
  switch (result.outcome) {
    case 'ok':
      return { state: 'absent', output: {} } as const;
    case 'declined':
      return { state: 'declined', output: { declineCode: result.declineCode } } as const;
    case 'refused':
      return { state: 'refused', output: { code: result.code } } as const;
  }
}

/** Call it last: the audit log is locked. */
async function recordCard(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  paymentMethodId: string | undefined,
  nowMs: number,
): Promise<void> {
  if (paymentMethodId === undefined) return;
  const origin = { actor: { type: 'system' }, runId } as const;
  await recordCardOnFile(transaction, accountId, origin, paymentMethodId, nowMs);
}

/** For payment by card by a person, for payment by invoice by a bank. @returns `advanced` if it has failed. */
async function waitForPayment(
  deps: AdvancePurchaseWorkflowDeps,
  workflow: PurchaseWorkflow,
  steps: readonly PurchaseStep[],
): Promise<AdvanceOutcome | 'advanced'> {
  const found = await deps.provider.findInvoice(knownOf(steps).invoiceId ?? '');
  if (found.outcome === 'ok') {
    const pay = steps.findLast((each) => each.step === 'pay' && each.state === 'done');
    const failure = pay && failureOf(found.value);
    const nowMs = deps.now();
    const settlement = await deps.database.transaction().execute(async (transaction) => {
      const locked = await lockPurchaseWorkflow(transaction, workflow);
      if (!locked || locked.fence !== workflow.fence) return 'overtaken';
      const settled = await settleInvoice(transaction, locked, found.value, nowMs);
      if (settled !== 'unchanged' || locked.status !== 'pending' || !failure) return settled;
      // From here on the workflow goes on as after a payment that is declined at once.
      await updateStep(transaction, workflow, pay, 'done', failure, nowMs);
      return 'advanced';
    });
    if (settlement === 'overtaken' || settlement === 'parked' || settlement === 'advanced')
      return settlement;
    if (settlement !== 'unchanged') return 'ended';
  }
  const atMs = Math.min(deps.now() + PAYMENT_CHECK_MS, workflow.expiresAt?.getTime() ?? Infinity);
  await releasePurchaseWorkflow(deps.database, workflow, atMs, 0);
  return 'waiting';
}

async function waitLonger(
  deps: AdvancePurchaseWorkflowDeps,
  workflow: PurchaseWorkflow,
  step: StepName,
  reason: string,
): Promise<AdvanceOutcome> {
  const delayMs = retryDelayMs(workflow.waitCount);
  deps.logger.warn(
    { runId: workflow.runId, step, reason, delayMs },
    'the payment provider refused a step or gave no conclusive answer; the worker asks again later',
  );
  await releasePurchaseWorkflow(
    deps.database,
    workflow,
    deps.now() + delayMs,
    workflow.waitCount + 1,
  );
  return 'waiting';
}
