/** The endings of runs that are not an invoice's fate: refused, declined, failed, and bought subscriptions. */
import type { Database } from '@sluice/database/connection';
import { updateAccountPlan } from '@sluice/database/account-plans';
import { finishRun, lockRun, type Run, type RunStep } from '@sluice/database/runs';
import type { Tables } from '@sluice/database/tables';
import { explainRefusal } from '@sluice/domain/addon-decision';
import { declineMessage, FAILURE_MESSAGES } from '@sluice/domain/decline-message';
import type { RunEnding } from '@sluice/domain/run';
import type { RunResult } from '@sluice/domain/run-content';
import type { StepName } from '@sluice/domain/run-workflow';
import type { Transaction } from 'kysely';
import { checkoutOf, type StepOutput } from './purchase-steps.ts';
import { recordEnding } from './record-ending.ts';

interface EndRunDeps {
  readonly database: Database;
  readonly now: () => number;
}

/** The workflow says that nothing is left to do. */
export async function endRun(
  deps: EndRunDeps,
  run: Run,
  steps: readonly RunStep[],
  status: RunEnding,
): Promise<'ended' | 'overtaken'> {
  const declined = steps.findLast((step) => step.state === 'declined');
  const code = (declined?.output as { declineCode?: string | null } | undefined)?.declineCode;
  const isRefused = steps.some((step) => step.state === 'refused');
  const message = declined
    ? declineMessage(code ?? null)
    : isRefused
      ? FAILURE_MESSAGES.refused
      : FAILURE_MESSAGES.expired;
  const result = { charged: null, invoiceId: run.invoiceId };
  return deps.database.transaction().execute(async (transaction) => {
    const locked = await lockRun(transaction, run);
    if (!locked || locked.fence !== run.fence) return 'overtaken';
    return end(transaction, locked, status, message, result, deps.now());
  });
}

/**
 * A step that ends the run by what it found or did. Call with the run locked.
 *
 * @param known - of all steps that are done, this one's too.
 */
export async function endRunByStep(
  transaction: Transaction<Tables>,
  run: Run,
  step: StepName,
  known: StepOutput,
  nowMs: number,
): Promise<'ended' | 'advanced'> {
  const nothing: RunResult = { charged: null, invoiceId: null };
  if (step === 'inspect') {
    const { decision } = known;
    if (!decision)
      return end(transaction, run, 'refused', FAILURE_MESSAGES.noSubscription, nothing, nowMs);
    const result = { ...nothing, items: decision.items };
    if (decision.outcome === 'refused') {
      const message = explainRefusal(decision.items);
      return end(transaction, run, 'refused', message, result, nowMs);
    }
    if (decision.outcome === 'nothing-to-do')
      return end(transaction, run, 'success', null, result, nowMs);
  }
  if (step === 'apply') {
    const result = {
      charged: known.charged ?? null,
      invoiceId: known.invoiceId ?? null,
      items: known.decision?.items ?? [],
    };
    return end(transaction, run, 'success', null, result, nowMs);
  }
  if (step === 'subscribe' && known.subscription) {
    const { plan } = checkoutOf(run.content);
    await updateAccountPlan(transaction, run.accountId, plan, nowMs);
    const { subscription } = known;
    const result = {
      charged: known.charged ?? null,
      invoiceId: subscription.latestInvoiceId,
      subscription,
    };
    return end(transaction, run, 'success', null, result, nowMs);
  }
  return 'advanced';
}

/** The run's ending and its entry in the audit log. */
async function end(
  transaction: Transaction<Tables>,
  run: Run,
  status: RunEnding,
  message: string | null,
  result: RunResult,
  nowMs: number,
): Promise<'ended'> {
  if (await finishRun(transaction, run, { status, message, result }, nowMs))
    await recordEnding(transaction, run, status, nowMs);
  return 'ended';
}
