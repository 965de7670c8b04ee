/**
 * The checkout of a plan (`account-billing.md` §3, §4). It waits for its purchase workflow. If a purchase workflow
 * outlives the wait, it goes on, and the answer is 409 with the time to ask again, and the purchase to ask for.
 */
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { findCoupon, type Plan } from '@sluice/domain/billing/catalogue';
import { discountedAmount, isSameMoney, type Money } from '@sluice/domain/values/money';
import { isCheckoutRefusal, type CheckoutRefusal } from '@sluice/domain/billing/decline-message';
import { judgeCheckout } from '@sluice/domain/billing/purchase-workflow';
import type { BoughtSubscription } from '@sluice/domain/billing/purchase-content';
import { z } from 'zod';
import { billingAccountOf, refusedField, startPurchase } from '../billing/billing.ts';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import {
  accountParams,
  chargedOf,
  expectedMoney,
  moneyShape,
  pollAfterSeconds,
  runIdText,
} from '../billing/billing-shapes.ts';
import { requirePaymentMethod } from '../billing/require-payment-method.ts';
import { findPurchaseToPoll } from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, paymentDeclined } from '../http/fields.ts';
import { notFound, type ProblemCode } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';
import { waitForPurchaseWorkflow } from '../billing/start-purchase-workflow.ts';

const tags = ['billing'];
const planIdOf = (plans: readonly Plan[]) =>
  z
    .string()
    .regex(/^[\w-]{1,100}$/, 'must be the id of a plan')
    .meta({
      enum: plans.map(({ id }) => id),
      requestExamples: plans
        .filter(({ tier, interval }) => tier !== 'builder' && interval === 'month')
        .slice(0, 1)
        .map(({ id }) => id),
    });
const couponCode = z.string().regex(/^[\w-]{1,100}$/, 'must be a coupon code');

const subscriptionRequest = z
  .strictObject({
    coupon_code: couponCode.optional(),
    payment_method_id: z
      .string()
      .regex(/^pm_\w{1,100}$/, 'must be the id of a payment method, such as pm_1')
      .optional(),
    quantity: z.int().min(1).max(10_000).default(1),
    expected_amount: expectedMoney.optional().meta({
      description:
        'The amount that the customer was shown. Another amount is not charged: 409 `amount_changed`.',
    }),
  })
  .meta({ requestExamples: [{ quantity: 1 }] });

const subscriptionShape = z.object({
  id: z.string(),
  plan_id: z.string(),
  status: z.string(),
  quantity: z.int(),
  coupon_code: z.string().nullable(),
  current_period_start: z.string(),
  current_period_end: z.string(),
  amount: moneyShape,
  latest_invoice_id: z.string().nullable(),
});

export function registerPlanCheckout(
  scope: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'catalogue' | 'purchaseWaitMs'>,
): void {
  const { database, catalogue, now, purchaseWaitMs } = effects;
  scope.post(
    '/v1/accounts/:account_id/billing/plans/:plan_id',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'Buy a plan',
        description:
          'Waits for the checkout. Concurrent checkouts of an account share a run: who asked for another plan, quantity or coupon than was bought gets 409 `checkout_conflict`. One that outlives the wait gets 409 `checkout_pending` and goes on.',
        params: accountParams.extend({
          plan_id: planIdOf(catalogue.plans.filter(({ isRetired }) => !isRetired)),
        }),
        body: subscriptionRequest,
        response: {
          200: z.object({ subscription: subscriptionShape, run_id: z.string() }),
          ...paymentDeclined,
          ...inFlight,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      const plan = catalogue.plans.find((each) => each.id === request.params.plan_id);
      if (!plan || plan.isRetired) throw new RequestRefused(notFound('the plan was'));
      const { coupon_code: code = null, quantity, expected_amount: expectedAmount } = request.body;
      if (code !== null && !findCoupon(catalogue, code, now()))
        throw refusedField(
          'coupon_code',
          'invalid',
          'is not a valid coupon; leave it out or use another one',
        );
      if (request.body.payment_method_id === undefined) {
        const coupon = code === null ? null : (findCoupon(catalogue, code, now()) ?? null);
        const amount = discountedAmount(plan.amount * quantity, coupon);
        await requirePaymentMethod(effects, account, { amount, currency: catalogue.currency });
      }
      const started = await startPurchase(request, effects, account, {
        kind: 'checkout',
        rail: account.rail,
        content: {
          type: 'checkout',
          plan,
          quantity,
          couponCode: code,
          paymentMethodId: request.body.payment_method_id ?? null,
          expectedAmount: expectedAmount ?? null,
        },
        sameness: { plan: plan.id, coupon: code, quantity },
      });
      const state = await waitForPurchaseWorkflow(
        database,
        started,
        purchaseWaitMs,
        ({ workflow }) => workflow.status !== 'pending',
      );
      const workflow = state?.workflow ?? started;
      const asked = { planId: plan.id, couponCode: code, quantity, expectedAmount };
      return reply.send({
        subscription: answerCheckout(workflow, asked, now()),
        run_id: workflow.runId,
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/plans/checkout_status',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'State of a checkout',
        description: 'The subscription is there once it is the one that was asked for.',
        params: accountParams,
        querystring: z.object({
          run_id: runIdText,
          plan_id: planIdOf(catalogue.plans),
          coupon_code: couponCode.optional(),
        }),
        response: {
          200: z.object({
            run_id: z.string(),
            status: z.enum(['pending', 'success', 'conflict', 'failed']),
            subscription: subscriptionShape.optional(),
            message: z.string().nullable(),
          }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { run_id: runId, plan_id: askedPlan, coupon_code: code = null } = request.query;
      const isCheckout = (each: PurchaseWorkflow): boolean => each.kind === 'checkout';
      const workflow = await findPurchaseToPoll(request, reply, effects, { runId }, isCheckout);
      const judged = judgeEnding(workflow, { planId: askedPlan, couponCode: code });
      return reply.send({
        run_id: workflow.runId,
        status: judged.status,
        ...(judged.subscription && { subscription: subscriptionToWire(judged.subscription) }),
        message: judged.status === 'failed' ? workflow.message : null,
      });
    },
  );
}

interface Asked {
  readonly planId: string;
  readonly couponCode: string | null;
  readonly quantity?: number;
  readonly expectedAmount?: Money | undefined;
}

function judgeEnding(
  workflow: PurchaseWorkflow,
  asked: Asked,
): {
  readonly status: 'pending' | 'success' | 'conflict' | 'failed';
  readonly subscription?: BoughtSubscription;
} {
  if (workflow.status === 'pending') return { status: 'pending' };
  const subscription = workflow.result?.subscription;
  if (workflow.status !== 'success' || !subscription) return { status: 'failed' };
  const charged = chargedOf(workflow.result) ?? workflow.result.due ?? null;
  const judged = judgeCheckout({ ...subscription, charged }, asked);
  return judged === 'success' ? { status: 'success', subscription } : { status: 'conflict' };
}

const PROBLEM_OF_REFUSAL = {
  amount_changed: 'amount_changed',
  unknown_subscription_item: 'plan_transition_not_allowed',
  addons_of_other_cycle: 'plan_transition_not_allowed',
  unknown_addon_held: 'plan_transition_not_allowed',
  coupon_expired: 'coupon_not_valid',
  payment_past_due: 'payment_past_due',
  payment_pending: 'payment_pending',
} as const satisfies Record<CheckoutRefusal, ProblemCode>;

/** @throws RequestRefused 409 if it goes on, bought something else or was refused, 402 if the card was declined. */
function answerCheckout(
  workflow: PurchaseWorkflow,
  asked: Asked,
  nowMs: number,
): z.infer<typeof subscriptionShape> {
  const meta = { run_id: workflow.runId };
  const { status, subscription } = judgeEnding(workflow, asked);
  if (subscription) return subscriptionToWire(subscription);
  if (status === 'pending')
    throw new RequestRefused({
      code: 'checkout_pending',
      message: 'the checkout is in progress and may still bill; ask for its status again',
      // The payment provider's own word for a request that is not done yet.
      meta: { ...meta, vendor_code: 'idempotency_key_in_use' },
      retryAfterSeconds: pollAfterSeconds(workflow, nowMs),
    });
  if (status === 'conflict')
    throw new RequestRefused({
      code: 'checkout_conflict',
      message:
        'a checkout of this account at the same time bought another plan, quantity or coupon; read the subscription first',
      meta,
    });
  const refusal = workflow.result?.refusal;
  const message = workflow.message ?? 'the payment could not be made; use another payment method';
  const field = refusedFieldOf(workflow, asked);
  throw new RequestRefused({
    code: isCheckoutRefusal(refusal) ? PROBLEM_OF_REFUSAL[refusal] : 'payment_declined',
    message,
    ...(field !== undefined && {
      details: [{ field, reason: 'invalid', message, source: { pointer: `/${field}` } }],
    }),
    meta,
  });
}

/** The refused field of the caller's body; undefined if that body belongs to another caller of the shared checkout. */
function refusedFieldOf({ content, result }: PurchaseWorkflow, asked: Asked): string | undefined {
  if (content.type !== 'checkout') return undefined;
  if (result?.refusal === 'coupon_expired' && content.couponCode === asked.couponCode)
    return 'coupon_code';
  return result?.refusal === 'amount_changed' &&
    asked.expectedAmount &&
    isSameMoney(asked.expectedAmount, content.expectedAmount ?? null)
    ? 'expected_amount'
    : undefined;
}

const subscriptionToWire = (
  subscription: BoughtSubscription,
): z.infer<typeof subscriptionShape> => ({
  id: subscription.id,
  plan_id: subscription.planId,
  status: subscription.status,
  quantity: subscription.quantity,
  coupon_code: subscription.couponCode,
  current_period_start: new Date(subscription.currentPeriodStartMs).toISOString(),
  current_period_end: new Date(subscription.currentPeriodEndMs).toISOString(),
  amount: subscription.amount,
  latest_invoice_id: subscription.latestInvoiceId,
});
