/**
 * The endings of runs that are not an invoice's fate: refused, declined, failed, failed by a person, and bought
 * subscriptions.
 */
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { updateAccountPlan } from '@sluice/database/billing/account-plans';
import { giveAllowance } from '@sluice/database/credits/credits';
import { lockRun, type Run } from '@sluice/database/billing/runs';
import type { RunStep } from '@sluice/database/billing/run-steps';
import { lockSetAsideRun, type SetAsideRun } from '@sluice/database/billing/set-aside-runs';
import { insertVendorEvent } from '@sluice/database/billing/vendor-events';
import { explainRefusal } from '@sluice/domain/billing/addon-decision';
import { allowanceOf, CREDIT_KINDS } from '@sluice/domain/billing/allowance';
import type { Plan } from '@sluice/domain/billing/catalogue';
import {
  declineMessage,
  FAILURE_MESSAGES,
  refusalMessage,
} from '@sluice/domain/billing/decline-message';
import type { RunEnding } from '@sluice/domain/billing/run';
import type { BoughtSubscription, RunResult } from '@sluice/domain/billing/run-content';
import type { StepName } from '@sluice/domain/billing/run-workflow';
import { standingOf } from '@sluice/domain/billing/subscription-status';
import { checkoutOf, type StepOutput } from './run-step.ts';
import { recordEnding, type Ending } from './record-ending.ts';

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
  const refused = steps.findLast((step) => step.state === 'refused');
  const refusal = (refused?.output as { code?: string } | undefined)?.code;
  let message: string = FAILURE_MESSAGES.expired;
  if (refused) message = refusalMessage(refusal);
  if (declined) {
    const output = declined.output as { declineCode?: string | null } | undefined;
    message = declineMessage(output?.declineCode ?? null);
  }
  const result = {
    charged: null,
    invoiceId: run.invoiceId,
    ...(refusal !== undefined && { refusal }),
  };
  return deps.database.transaction().execute(async (transaction) => {
    const locked = await lockRun(transaction, run);
    if (!locked || locked.fence !== run.fence) return 'overtaken';
    await recordEnding(transaction, locked, { status, message, result }, deps.now());
    return 'ended';
  });
}

/**
 * Ends a purchase that was set aside and cannot go on: what the vendor took is not the price, or a step is never done.
 * For a person who has put things right at the vendor, because nothing is asked of it here: an invoice is void there
 * or refunded. One that is paid later sets the purchase aside again (`settle-invoice.ts`).
 *
 * Used by `sluice purchases` (`scripts/purchases.ts`).
 *
 * @returns the run as it was set aside; undefined where none is, or it has ended before.
 */
export async function failSetAsideRun(
  database: Database,
  runId: string,
  nowMs: number,
): Promise<SetAsideRun | undefined> {
  return database.transaction().execute(async (transaction) => {
    const setAside = await lockSetAsideRun(transaction, runId);
    const run = setAside && (await lockRun(transaction, setAside));
    if (run?.status !== 'pending') return undefined;
    const result = { charged: null, invoiceId: run.invoiceId };
    const ending = { status: 'failed', message: FAILURE_MESSAGES.setAside, result } as const;
    await recordEnding(transaction, run, ending, nowMs);
    return setAside;
  });
}

/**
 * A step that ends the run by what it found or did. Call with the run locked.
 *
 * @param known - of all steps that are done, this one's too.
 */
export async function endRunByStep(
  transaction: Transaction,
  run: Run,
  step: StepName,
  known: StepOutput,
  nowMs: number,
): Promise<'ended' | 'advanced'> {
  const nothing: RunResult = { charged: null, invoiceId: null };
  const end = async (
    status: RunEnding,
    message: string | null,
    result: RunResult,
    bought: Pick<Ending, 'plan'> = {},
  ): Promise<'ended'> => {
    await recordEnding(transaction, run, { status, message, result, ...bought }, nowMs);
    return 'ended';
  };
  if (step === 'inspect') {
    const { decision, refusal } = known;
    if (refusal !== undefined)
      return end('refused', refusalMessage(refusal), { ...nothing, refusal });
    if (!decision) return end('refused', FAILURE_MESSAGES.noSubscription, nothing);
    const result = { ...nothing, items: decision.items };
    if (decision.outcome === 'refused') {
      const message = explainRefusal(decision.items);
      return end('refused', message, result);
    }
    if (decision.outcome === 'nothing-to-do') return end('success', null, result);
  }
  const { due } = known;
  if (step === 'apply') {
    if (due) await lookAtPayment(transaction, run, known.invoiceId, nowMs);
    const result = {
      charged: known.charged ?? null,
      ...(due && { due }),
      invoiceId: known.invoiceId ?? null,
      items: known.decision?.items ?? [],
    };
    return end('success', null, result);
  }
  if (step === 'subscribe' && known.subscription) {
    const { plan } = checkoutOf(run.content);
    const { subscription } = known;
    // A subscription that is looked up later may be unpaid by then, or have ended.
    const standing = standingOf(subscription.status);
    const bought = { plan, unpaidRunId: due ? run.runId : null };
    const before = await updateAccountPlan(transaction, run.accountId, bought, standing, nowMs);
    // That is how things stood when the vendor answered. Events since then may have been applied already, so it is
    // read again.
    const { runId } = run;
    const event = { eventId: `checkout_${runId}`, type: 'customer.subscription.updated' };
    await insertVendorEvent(transaction, { ...event, objectId: subscription.id }, nowMs);
    if (due) await lookAtPayment(transaction, run, subscription.latestInvoiceId, nowMs);
    // Who is told of the plan may use what it includes, once it is paid.
    else if (standing?.planStatus === 'active')
      await givePlanAllowances(transaction, run, { plan, subscription }, nowMs);
    const result = {
      charged: known.charged ?? null,
      ...(due && { due }),
      invoiceId: subscription.latestInvoiceId,
      subscription,
    };
    return end('success', null, result, { plan: { before, after: plan.id } });
  }
  return 'advanced';
}

/** What the plan includes this month, of every kind. @param run - its purchase. */
export async function givePlanAllowances(
  transaction: Transaction,
  { accountId, runId }: Pick<Run, 'accountId' | 'runId'>,
  bought: { readonly plan: Plan; readonly subscription: BoughtSubscription | undefined },
  nowMs: number,
): Promise<void> {
  const { plan, subscription } = bought;
  // To choose again the plan of a subscription that goes on costs nothing, also where its price was refunded.
  const boughtBy = subscription?.isNew === true ? runId : undefined;
  for (const kind of CREDIT_KINDS) {
    const allowance = allowanceOf(plan, kind, nowMs);
    if (allowance)
      await giveAllowance(transaction, { accountId, kind }, allowance, nowMs, boughtBy);
  }
}

/** The bank may have paid, and the vendor may have told it, before this was written down: so it is looked at once more. */
async function lookAtPayment(
  transaction: Transaction,
  { runId }: Run,
  invoiceId: string | null | undefined,
  nowMs: number,
): Promise<void> {
  const event = { eventId: `payment_${runId}`, type: 'invoice.updated' };
  await insertVendorEvent(transaction, { ...event, objectId: invoiceId ?? '' }, nowMs);
}
