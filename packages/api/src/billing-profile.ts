/**
 * What an account pays for: billing info, and the customer profile. What the vendor knows is read from it
 * now.
 */
import { findVendorCustomer, listPendingRuns } from '@sluice/database/runs';
import { findCoupon } from '@sluice/domain/catalogue';
import { z } from 'zod';
import { billingAccountOf, contactOf, requireRail, type BillingDependencies } from './billing.ts';
import { accountParams, moneyShape } from './billing-shapes.ts';
import {
  badRequest,
  commonFailures,
  forbidden,
  missing,
  unprocessable,
  vendorFailed,
} from './fields.ts';
import { answerOf, cardOf, paymentMethodShape } from './payment-methods.ts';
import type { ApiServer } from './server.ts';

const tags = ['billing'];
const failures = {
  ...badRequest,
  ...unprocessable,
  ...forbidden,
  ...missing,
  ...vendorFailed,
  ...commonFailures,
};

const infoShape = z.object({
  billing: z.object({
    rail: z.enum(['card', 'invoiced']),
    plan: z.object({ id: z.string(), tier: z.string(), status: z.string() }),
    subscription: z
      .object({
        id: z.string(),
        status: z.string(),
        current_period_start: z.string(),
        current_period_end: z.string(),
        cancel_at_period_end: z.boolean(),
      })
      .nullable(),
    addons: z.array(
      z.object({ sku: z.string(), name: z.string(), quantity: z.int(), amount: moneyShape }),
    ),
    payment_method: paymentMethodShape,
    billing_email: z.string().nullable(),
    in_flight: z.array(z.object({ run_id: z.string(), kind: z.string(), started_at: z.string() })),
  }),
});

export function registerBillingProfile(scope: ApiServer, deps: BillingDependencies): void {
  scope.get(
    '/v1/accounts/:account_id/billing/info',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'Plan, subscription, add-ons, card and purchases under way',
        params: accountParams,
        response: { 200: infoShape, ...failures },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      const customerId = await findVendorCustomer(deps.database, account.accountId);
      const subscription =
        customerId === undefined ? null : answerOf(await deps.vendor.findSubscription(customerId));
      const held = new Map(subscription?.items.map((item) => [item.priceId, item.quantity]));
      const { currency } = deps.catalogue;
      const pending = await listPendingRuns(deps.database, account.accountId);
      return reply.send({
        billing: {
          rail: account.rail,
          plan: { id: account.planId, tier: account.planTier, status: account.planStatus },
          subscription: subscription && {
            id: subscription.subscriptionId,
            status: subscription.status,
            current_period_start: new Date(subscription.currentPeriodStartMs).toISOString(),
            current_period_end: new Date(subscription.currentPeriodEndMs).toISOString(),
            cancel_at_period_end: subscription.isEndingAtPeriodEnd,
          },
          addons: deps.catalogue.addons.flatMap((addon) => {
            const quantity = held.get(addon.sku);
            return quantity === undefined
              ? []
              : [
                  {
                    sku: addon.sku,
                    name: addon.name,
                    quantity,
                    amount: { amount: addon.amount * quantity, currency },
                  },
                ];
          }),
          payment_method: await cardOf(deps, customerId),
          billing_email: account.billingEmail,
          in_flight: pending.map((run) => ({
            run_id: run.runId,
            kind: run.kind,
            started_at: run.createdAt.toISOString(),
          })),
        },
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/profile',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'The customer profile of an invoice-billed account',
        description: '`coupons`: codes to try, commas between.',
        params: accountParams,
        querystring: z.object({ coupons: z.string().max(1_000).optional() }),
        response: {
          200: z.object({
            profile: z.object({
              customer_id: z.string().nullable(),
              name: z.string(),
              email: z.string(),
              currency: z.string(),
              coupons: z
                .array(
                  z.object({
                    code: z.string(),
                    name: z.string().nullable(),
                    percent_off: z.string().nullable(),
                    amount_off: moneyShape.nullable(),
                    expires_at: z.string().nullable(),
                    valid: z.boolean(),
                  }),
                )
                .optional(),
            }),
          }),
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      requireRail(account, 'invoiced');
      const customerId = await findVendorCustomer(deps.database, account.accountId);
      const { coupons } = request.query;
      return reply.send({
        profile: {
          customer_id: customerId ?? null,
          ...contactOf(account),
          currency: account.currency,
          ...(coupons !== undefined && {
            coupons: coupons
              .split(',')
              .filter((code) => code !== '')
              .map((code) => couponToWire(deps, code)),
          }),
        },
      });
    },
  );
}

function couponToWire({ catalogue, now }: BillingDependencies, code: string) {
  const coupon = findCoupon(catalogue, code, now());
  return {
    code,
    name: coupon?.name ?? null,
    percent_off: coupon?.percentOff == null ? null : String(coupon.percentOff),
    amount_off:
      coupon?.amountOff == null ? null : { amount: coupon.amountOff, currency: catalogue.currency },
    expires_at: coupon?.expiresAtMs == null ? null : new Date(coupon.expiresAtMs).toISOString(),
    valid: coupon !== undefined,
  };
}
