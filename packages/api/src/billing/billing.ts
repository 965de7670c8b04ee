/** Common parts of every billing route: the account, its payment method type and plan, and starting a purchase. */
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import { findBillingAccount } from '@sluice/database/billing/account-plans';
import type { Database } from '@sluice/database/connection/connection';
import type { BillingContact, PurchaseContent } from '@sluice/domain/billing/purchase-content';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { limitReached, notFound, type Problem, validationFailed } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { pollAfterSeconds } from './billing-shapes.ts';
import type { StartRunEffects } from './billing-effects.ts';
import {
  startPurchaseWorkflow,
  UNPAID_COUNT_MAX,
  type PurchaseRequest,
} from './start-purchase-workflow.ts';

/** The caller's account as billing sees it. @throws RequestRefused 404 */
export async function billingAccountOf(
  request: FastifyRequest,
  database: Database,
): Promise<BillingAccount> {
  const account = await findBillingAccount(database, accountCallerOf(request).accountId);
  if (!account) throw new RequestRefused(notFound('account'));
  return account;
}

/** The account as the payment provider knows it. A lost customer is found by the address, so it never changes. */
export const contactOf = (
  account: Pick<BillingAccount, 'accountId' | 'name' | 'billingEmail'>,
): BillingContact => ({
  name: account.name,
  email: account.billingEmail ?? `account-${account.accountId}@billing.invalid`,
});

/** Whether the plan has a monthly allowance, and may buy add-ons. */
export const isPaidPlan = (account: BillingAccount): boolean =>
  account.planStatus === 'active' && account.planTier !== 'builder';

/** @throws RequestRefused 422 */
export function requirePaymentMethodType(
  account: BillingAccount,
  rail: BillingAccount['rail'],
): void {
  if (account.rail === rail) return;
  throw new RequestRefused({
    code: 'rail_not_supported',
    message: `this call is for accounts with the payment method type ${rail}; this account has the type ${account.rail}`,
  });
}

/** One field of the body that cannot be taken. */
export const refusedField = (field: string, reason: string, message: string): RequestRefused =>
  new RequestRefused(
    validationFailed([
      {
        field,
        reason,
        message: `${field} ${message}`,
        source: { pointer: `/${field.replaceAll('.', '/')}` },
      },
    ]),
  );

type Without<Content, Key extends string> = Content extends unknown ? Omit<Content, Key> : never;

/**
 * Starts a purchase for the caller, or joins the same one.
 *
 * @throws RequestRefused 409 while another one is in flight.
 */
export async function startPurchase(
  request: FastifyRequest,
  effects: StartRunEffects,
  account: BillingAccount,
  purchase: Pick<PurchaseRequest, 'kind' | 'rail' | 'sameness'> & {
    readonly content: Without<PurchaseContent, 'contact'>;
  },
): Promise<PurchaseWorkflow> {
  const started = await startPurchaseWorkflow(effects, {
    ...purchase,
    accountId: account.accountId,
    content: { ...purchase.content, contact: contactOf(account) },
    origin: originOf(request),
  });
  if (started.outcome === 'card-changing') throw cardChanging();
  if (started.outcome === 'too-many-unpaid')
    throw new RequestRefused(
      limitReached('the account', 'card purchases that wait to be paid', UNPAID_COUNT_MAX),
    );
  // As the next call with this token would be answered.
  if (started.outcome === 'closed')
    throw new RequestRefused({
      code: 'unauthorized',
      message: 'unauthorized: the account is closed, so ask the operator to open it',
    });
  if (started.outcome !== 'in-flight') return started.workflow;
  const problem: Problem = {
    code: 'purchase_in_flight',
    message: 'another purchase of this account is in progress; wait until it has ended',
    meta: { run_id: started.workflow.runId },
    retryAfterSeconds: pollAfterSeconds(started.workflow, effects.now()),
  };
  throw new RequestRefused(problem);
}

export const cardChanging = () =>
  new RequestRefused({
    code: 'conflict',
    message: 'the card of this account is being changed; try again later',
    retryAfterSeconds: 1,
  });

/** Sets the time to ask again, if the answer may still change. */
export function setPollHeader(
  reply: FastifyReply,
  workflow: PurchaseWorkflow,
  nowMs: number,
): void {
  if (workflow.status === 'pending')
    void reply.header('retry-after', pollAfterSeconds(workflow, nowMs));
}
