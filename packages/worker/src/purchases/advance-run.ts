/**
 * Takes one run as far as it will go now: claims it, does the step that `domain/src/billing/run-workflow.ts`
 * names, writes down what came of it together with what it means for the account, and goes on to the next step.
 *
 * A crash at any point costs nothing but time: before the intent nothing has happened, after it the
 * same key is used again, and a step's outcome is written in one transaction with its effects. Two
 * workers on one run: the second claim's number fences the first one off.
 *
 * Before: `api/src/billing/start-run.ts` (through `platform/src/queue/queue.ts`), `purchases.ts`. After:
 * `settle-invoice.ts`, `billing-vendor/src/port/vendor.ts`.
 */
import type { Vendor, VendorResult } from '@sluice/billing-vendor/port/vendor';
import { recordCardOnFile } from '@sluice/database/billing/card-changes';
import type { Database, Transaction } from '@sluice/database/connection/connection';
import {
  claimRun,
  listBoughtAddons,
  listBoughtPlanPrices,
  lockRun,
  parkRun,
  releaseRun,
  updateRunInvoice,
  type Run,
  type RunKey,
} from '@sluice/database/billing/runs';
import {
  findVendorCustomer,
  insertVendorCustomer,
} from '@sluice/database/billing/vendor-customers';
import {
  insertStepIntent,
  listRunSteps,
  updateStep,
  type RunStep,
} from '@sluice/database/billing/run-steps';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import {
  idempotencyKey,
  INTENT_REPLAY_MS_MAX,
  nextMove,
  retryDelayMs,
} from '@sluice/domain/billing/run-workflow';
import type { StepName } from '@sluice/domain/billing/run-workflow';
import type { Logger } from '@sluice/platform/process/logger';
import { endRun, endRunByStep } from '../settlement/end-run.ts';
import { STEPS } from './purchase-steps.ts';
import type {
  Step,
  StepContext,
  StepInput,
  StepOutput,
  StepResult,
} from '../settlement/run-step.ts';
import { failureOf } from './invoice-steps.ts';
import { settleInvoice } from '../settlement/settle-invoice.ts';

export interface AdvanceRunDeps {
  readonly database: Database;
  readonly vendor: Vendor;
  readonly catalogue: Catalogue;
  /** How long a run waits for a worker that died. Must be well above the vendor's timeout. */
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

/** How often an invoice whose payment is waited for is looked at, in case the vendor's event was lost. */
const PAYMENT_CHECK_MS = 60_000;

export async function advanceRun(deps: AdvanceRunDeps, key: RunKey): Promise<AdvanceOutcome> {
  const claimed = await claimRun(deps.database, key, deps.leaseMs);
  if (!claimed) return 'overtaken';
  let run = claimed;
  for (;;) {
    const steps = await listRunSteps(deps.database, run);
    const nowMs = deps.now();
    const isExpired = run.expiresAt !== null && run.expiresAt.getTime() <= nowMs;
    const next = nextMove({ kind: run.kind, rail: run.rail, isExpired }, steps);
    switch (next.move) {
      case 'park':
        await parkRun(deps.database, run, `the step ${next.step} was tried too often`);
        deps.logger.error({ runId: run.runId, step: next.step }, 'a run waits for a person');
        return 'parked';
      case 'wait-for-payment': {
        const outcome = await waitForPayment(deps, run, steps);
        if (outcome !== 'advanced') return outcome;
        break;
      }
      case 'finish':
        return endRun(deps, run, steps, next.status);
      case 'do': {
        const outcome = await doStep(deps, run, steps, next.step, next.attempt);
        if (outcome !== 'advanced') return outcome;
        // The vendor has done what it was asked, or said that it will not: the waits begin anew.
        run = { ...run, waitCount: 0 };
      }
    }
  }
}

const knownOf = (steps: readonly RunStep[]): StepOutput =>
  Object.assign(
    {},
    ...steps.filter((step) => step.state === 'done').map((step) => step.output as StepOutput),
  ) as StepOutput;

async function doStep(
  deps: AdvanceRunDeps,
  run: Run,
  steps: readonly RunStep[],
  name: StepName,
  attempt: number,
): Promise<AdvanceOutcome | 'advanced'> {
  const { database, vendor, catalogue } = deps;
  const step: Step = STEPS[name];
  const nowMs = deps.now();
  // An account has one customer, so two runs of it use one key.
  const key =
    name === 'customer'
      ? idempotencyKey(`account_${run.accountId}`, name, attempt)
      : idempotencyKey(run.runId, name, attempt);
  const base = {
    vendor,
    catalogue,
    run,
    known: knownOf(steps),
    key,
    nowMs,
    boughtPlanPriceIds:
      name === 'subscribe' ? await listBoughtPlanPrices(database, run.accountId) : [],
    boughtAddons: name === 'inspect' ? await listBoughtAddons(database, run.accountId) : [],
    existingCustomerId:
      name === 'customer' ? await findVendorCustomer(database, run.accountId) : undefined,
  };
  const hasIntent = steps.some((each) => each.step === name && each.attempt === attempt);
  let input: StepInput = {};
  if (!hasIntent && step.prepare) {
    const prepared = await step.prepare(base);
    if (prepared.outcome === 'unknown') return waitLonger(deps, run, name, prepared.reason);
    // Kept with the intent, so that a worker that takes over does not ask for what cannot be done.
    input = prepared.outcome === 'ok' ? prepared.value : { refusal: refusalOf(prepared) };
  }
  await deps.onPoint?.(`before-intent:${name}`);
  const intent = await insertStepIntent(
    database,
    run,
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
  // What exists at the vendor tells more than an answer that cannot change, or that says "not like this".
  const refusal = result.outcome === 'refused' ? result : undefined;
  if (refusal || (result.outcome === 'unknown' && result.isFinal)) {
    const found = await step.lookUp(context);
    result = refusal && found.outcome === 'ok' && found.value === null ? refusal : found;
  }
  await deps.onPoint?.(`after-vendor:${name}`);
  if (result.outcome === 'unknown') return waitLonger(deps, run, name, result.reason);
  const settled = await recordStep(deps, run, { step: name, attempt }, result, base.known);
  await deps.onPoint?.(`after-record:${name}`);
  // Attempts are few, and an outage outlasts as many calls: the next one waits like an answer that is not known.
  const hadNoEffect = result.outcome === 'ok' && result.value === null;
  return hadNoEffect && settled === 'advanced'
    ? waitLonger(deps, run, name, `attempt ${attempt} had no effect`)
    : settled;
}

const refusalOf = (
  result: Extract<VendorResult<unknown>, { outcome: 'declined' | 'refused' }>,
): string => (result.outcome === 'refused' ? result.code : (result.declineCode ?? 'declined'));

type KnownStepResult = Exclude<StepResult<StepOutput | null>, { outcome: 'unknown' }>;

/** The second transaction: what came of the step, and what it means, together. */
async function recordStep(
  deps: AdvanceRunDeps,
  run: Run,
  step: { readonly step: StepName; readonly attempt: number },
  result: KnownStepResult,
  known: StepOutput,
): Promise<AdvanceOutcome | 'advanced'> {
  const nowMs = deps.now();
  return deps.database.transaction().execute(async (transaction) => {
    const locked = await lockRun(transaction, run);
    if (!locked || locked.status !== 'pending' || locked.fence !== run.fence) return 'overtaken';
    if (result.outcome !== 'ok' || result.value === null) {
      await updateStep(transaction, run, step, 'intent', unsuccessful(result), nowMs);
      await recordCard(transaction, run, result.cardOnFile, nowMs);
      return 'advanced';
    }
    const { customerId: made } = result.value;
    const output =
      step.step === 'customer' && made !== undefined
        ? { customerId: await insertVendorCustomer(transaction, run.accountId, made, nowMs) }
        : result.value;
    await updateStep(transaction, run, step, 'intent', { state: 'done', output }, nowMs);
    if (step.step === 'invoice' && output.invoiceId !== undefined)
      await updateRunInvoice(transaction, run, output.invoiceId);
    // What the vendor owes the customer may pay the invoice as it is finalized.
    const isPaidAtOnce = step.step === 'finalize' && output.invoiceStatus === 'paid';
    if (step.step === 'pay' || step.step === 'void' || isPaidAtOnce) {
      const {
        invoiceId = '',
        invoiceStatus = 'open',
        total = { amount: 0, currency: '' },
      } = output;
      const fate = { invoiceId, status: invoiceStatus, total };
      const settlement = await settleInvoice(transaction, locked, fate, nowMs);
      if (settlement === 'parked') return 'parked';
      return settlement === 'unchanged' ? 'advanced' : 'ended';
    }
    const all = { ...known, ...output };
    const ended = await endRunByStep(transaction, locked, step.step, all, nowMs);
    await recordCard(transaction, run, result.cardOnFile, nowMs);
    return ended;
  });
}

/** What is kept of a step that did not succeed, or that provably had no effect. */
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
  { accountId, runId }: RunKey,
  paymentMethodId: string | undefined,
  nowMs: number,
): Promise<void> {
  if (paymentMethodId === undefined) return;
  const origin = { actor: { type: 'system' }, runId } as const;
  await recordCardOnFile(transaction, accountId, origin, paymentMethodId, nowMs);
}

/** By a person on the card rail, by a bank on the invoiced one. @returns `advanced` where it has failed. */
async function waitForPayment(
  deps: AdvanceRunDeps,
  run: Run,
  steps: readonly RunStep[],
): Promise<AdvanceOutcome | 'advanced'> {
  const found = await deps.vendor.findInvoice(knownOf(steps).invoiceId ?? '');
  if (found.outcome === 'ok') {
    const pay = steps.findLast((each) => each.step === 'pay' && each.state === 'done');
    const failure = pay && failureOf(found.value);
    const nowMs = deps.now();
    const settlement = await deps.database.transaction().execute(async (transaction) => {
      const locked = await lockRun(transaction, run);
      if (!locked || locked.fence !== run.fence) return 'overtaken';
      const settled = await settleInvoice(transaction, locked, found.value, nowMs);
      if (settled !== 'unchanged' || locked.status !== 'pending' || !failure) return settled;
      // From here on the workflow does what it does with a payment that is declined at once.
      await updateStep(transaction, run, pay, 'done', failure, nowMs);
      return 'advanced';
    });
    if (settlement === 'overtaken' || settlement === 'parked' || settlement === 'advanced')
      return settlement;
    if (settlement !== 'unchanged') return 'ended';
  }
  const atMs = Math.min(deps.now() + PAYMENT_CHECK_MS, run.expiresAt?.getTime() ?? Infinity);
  await releaseRun(deps.database, run, atMs, 0);
  return 'waiting';
}

async function waitLonger(
  deps: AdvanceRunDeps,
  run: Run,
  step: StepName,
  reason: string,
): Promise<AdvanceOutcome> {
  const delayMs = retryDelayMs(run.waitCount);
  deps.logger.warn(
    { runId: run.runId, step, reason, delayMs },
    'the vendor did not do it, or did not say what happened; asked again later',
  );
  await releaseRun(deps.database, run, deps.now() + delayMs, run.waitCount + 1);
  return 'waiting';
}
