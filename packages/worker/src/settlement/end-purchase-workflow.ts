/**
 * The endings of purchase workflows that are not an invoice's fate: refused, declined, failed, failed by a person, and
 * bought subscriptions.
 */
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { updateAccountPlan } from '@sluice/database/billing/account-plans';
import { capMonthAllowance, giveAllowance } from '@sluice/database/credits/credits';
import {
  lockPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { PurchaseStep } from '@sluice/database/billing/purchase-steps';
import {
  lockPurchaseInReview,
  type PurchaseInReview,
} from '@sluice/database/billing/purchases-in-review';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import { explainRefusal } from '@sluice/domain/billing/addon-decision';
import { allowanceOf, CREDIT_KINDS, monthEndOf } from '@sluice/domain/billing/allowance';
import type { Plan } from '@sluice/domain/billing/catalogue';
import {
  declineMessage,
  FAILURE_MESSAGES,
  refusalMessage,
  type CheckoutRefusal,
} from '@sluice/domain/billing/decline-message';
import type { PurchaseEnding } from '@sluice/domain/billing/purchase-workflow';
import type { PurchaseResult } from '@sluice/domain/billing/purchase-content';
import type { StepName } from '@sluice/domain/billing/workflow-steps';
import { standingOf } from '@sluice/domain/billing/subscription-status';
import { checkoutOf, type StepOutput } from './purchase-step.ts';
import { recordEnding, type Ending } from './record-ending.ts';

interface EndPurchaseWorkflowDeps {
  readonly database: Database;
  readonly now: () => number;
}

/** Ends a workflow without further steps. @param ownRefusal - ours, if no step was refused. */
export async function endPurchaseWorkflow(
  deps: EndPurchaseWorkflowDeps,
  workflow: PurchaseWorkflow,
  steps: readonly PurchaseStep[],
  status: PurchaseEnding,
  ownRefusal?: CheckoutRefusal,
): Promise<'ended' | 'overtaken'> {
  const declined = steps.findLast((step) => step.state === 'declined');
  const refused = steps.findLast((step) => step.state === 'refused');
  const refusal = ownRefusal ?? (refused?.output as { code?: string } | undefined)?.code;
  let message: string = FAILURE_MESSAGES.expired;
  if (refused ?? ownRefusal) message = refusalMessage(refusal);
  if (declined) {
    const output = declined.output as { declineCode?: string | null } | undefined;
    message = declineMessage(output?.declineCode ?? null);
  }
  const result = {
    charged: null,
    invoiceId: workflow.invoiceId,
    ...(refusal !== undefined && { refusal }),
  };
  return deps.database.transaction().execute(async (transaction) => {
    const locked = await lockPurchaseWorkflow(transaction, workflow);
    if (!locked || locked.fence !== workflow.fence) return 'overtaken';
    await recordEnding(transaction, locked, { status, message, result }, deps.now());
    return 'ended';
  });
}

/**
 * Ends a purchase in review that cannot go on: the amount that the payment provider took is not the price, or a step is
 * never done. For a person who has corrected it at the payment provider, because this does not ask the provider: an
 * invoice is void there or refunded. One that is paid later sets the purchase aside again (`settle-invoice.ts`).
 *
 * Used by `sluice purchases` (`scripts/purchases.ts`).
 *
 * @returns the purchase as it was in review; undefined if it is not in review, or has ended before.
 */
export async function failPurchaseInReview(
  database: Database,
  runId: string,
  nowMs: number,
): Promise<PurchaseInReview | undefined> {
  return database.transaction().execute(async (transaction) => {
    const setAside = await lockPurchaseInReview(transaction, runId);
    const workflow = setAside && (await lockPurchaseWorkflow(transaction, setAside));
    if (workflow?.status !== 'pending') return undefined;
    const result = { charged: null, invoiceId: workflow.invoiceId };
    const ending = { status: 'failed', message: FAILURE_MESSAGES.setAside, result } as const;
    await recordEnding(transaction, workflow, ending, nowMs);
    return setAside;
  });
}

/**
 * A step that ends the purchase workflow by its findings or effects. Call with the purchase workflow locked.
 *
 * @param known - of all steps that are done, this one's too.
 */
export async function endPurchaseByStep(
  transaction: Transaction,
  workflow: PurchaseWorkflow,
  step: StepName,
  known: StepOutput,
  nowMs: number,
): Promise<'ended' | 'advanced'> {
  const nothing: PurchaseResult = { charged: null, invoiceId: null };
  const end = async (
    status: PurchaseEnding,
    message: string | null,
    result: PurchaseResult,
    bought: Pick<Ending, 'plan'> = {},
  ): Promise<'ended'> => {
    await recordEnding(transaction, workflow, { status, message, result, ...bought }, nowMs);
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
    if (due) await lookAtPayment(transaction, workflow, known.invoiceId, nowMs);
    const result = {
      charged: known.charged ?? null,
      ...(due && { due }),
      invoiceId: known.invoiceId ?? null,
      items: known.decision?.items ?? [],
    };
    return end('success', null, result);
  }
  if (step === 'subscribe' && known.subscription) {
    const { plan } = checkoutOf(workflow.content);
    const { subscription } = known;
    // A subscription that is looked up later may be unpaid by then, or have ended.
    const standing = standingOf(subscription.status);
    const bought = { plan, unpaidRunId: due ? workflow.runId : null };
    const before = await updateAccountPlan(
      transaction,
      workflow.accountId,
      bought,
      standing,
      nowMs,
    );
    // That is how things stood when the payment provider answered. Events since then may have been applied already, so
    // it is read again.
    const { runId } = workflow;
    const event = { eventId: `checkout_${runId}`, type: 'customer.subscription.updated' };
    await insertProviderEvent(transaction, { ...event, objectId: subscription.id }, nowMs);
    if (due) await lookAtPayment(transaction, workflow, subscription.latestInvoiceId, nowMs);
    // A customer who hears of the plan may use its allowance, once it is paid.
    else if (standing?.planStatus === 'active') {
      const isChange =
        subscription.isNew === true || before !== plan.id || (known.charged?.amount ?? 0) > 0;
      await followPlan(transaction, workflow, plan, isChange, nowMs);
    }
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

/**
 * Brings the month's allowance of every kind to the plan's: missing credits are given, excess credits are taken back.
 * Call it when the plan is paid.
 *
 * @param workflow - its purchase.
 * @param isChange - false: the plan of a subscription that goes on was chosen again without a charge. Then it brings
 *   no credits again.
 */
export async function followPlan(
  transaction: Transaction,
  { accountId, runId }: Pick<PurchaseWorkflow, 'accountId' | 'runId'>,
  plan: Plan,
  isChange: boolean,
  nowMs: number,
): Promise<void> {
  const endsAtMs = monthEndOf(nowMs);
  for (const kind of CREDIT_KINDS) {
    const account = { accountId, kind };
    const allowance = allowanceOf(plan, kind, nowMs);
    const included = allowance?.included ?? 0;
    await capMonthAllowance(transaction, account, { included, endsAtMs }, runId, nowMs);
    if (allowance)
      await giveAllowance(transaction, account, allowance, nowMs, isChange ? runId : undefined);
  }
}

/**
 * The bank may have paid, and the payment provider may have sent the event, before this was recorded. So it is looked
 * at once more.
 */
async function lookAtPayment(
  transaction: Transaction,
  { runId }: PurchaseWorkflow,
  invoiceId: string | null | undefined,
  nowMs: number,
): Promise<void> {
  const event = { eventId: `payment_${runId}`, type: 'invoice.updated' };
  await insertProviderEvent(transaction, { ...event, objectId: invoiceId ?? '' }, nowMs);
}
