/** Billing info of an account, and its customer profile. Data of the payment provider is read from it now. */
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import { listPendingPurchases } from '@sluice/database/billing/purchase-workflows';
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import { includesRole } from '@sluice/domain/accounts/account';
import { findCoupon, type Catalogue } from '@sluice/domain/billing/catalogue';
import type { Money } from '@sluice/domain/values/money';
import type { ProviderSubscription } from '@sluice/billing-vendor/port/payment-provider';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { addressShape } from '../accounts/account-view.ts';
import { billingAccountOf, contactOf, requirePaymentMethodType } from './billing.ts';
import type { BillingEffects } from './billing-effects.ts';
import { accountParams, moneyShape } from './billing-shapes.ts';
import { accountFailures, providerFailed } from '../http/fields.ts';
import { answerOf, cardOf, paymentMethodShape } from './payment-methods.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];
const failures = { ...accountFailures, ...providerFailed };

const COUPON_COUNT_MAX = 20;
const codes = z
  .union([z.string(), z.array(z.string()).max(COUPON_COUNT_MAX)])
  .transform((given) =>
    [given]
      .flat()
      .flatMap((text) => text.split(','))
      .filter((code) => code !== ''),
  )
  .pipe(z.array(z.string().max(100)).max(COUPON_COUNT_MAX))
  .meta({ type: 'array', items: { type: 'string' }, maxItems: COUPON_COUNT_MAX });

const taxIds = z.array(z.object({ type: z.string(), value: z.string() }));

const infoShape = z.object({
  billing: z.object({
    rail: z.enum(['card', 'invoiced']),
    plan: z.object({
      id: z.string(),
      name: z.string(),
      tier: z.string(),
      status: z.string(),
      interval: z.enum(['month', 'year']).nullable(),
      amount: moneyShape.nullable(),
    }),
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
    balance_due: moneyShape.meta({ description: 'Of subscription invoices that are open.' }),
    next_invoice: z
      .object({
        date: z.string(),
        estimated: moneyShape.meta({ description: 'By the catalogue, before taxes and coupons.' }),
      })
      .nullable(),
    payment_method: paymentMethodShape.meta({
      description:
        'Null if the account has no payment method, and for a caller below `billing_admin`.',
    }),
    billing_email: z.string().nullable(),
    tax_ids: taxIds,
    in_flight: z.array(z.object({ run_id: z.string(), kind: z.string(), started_at: z.string() })),
  }),
});

export function registerBillingProfile(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'provider' | 'catalogue' | 'now'>,
): void {
  const { database, catalogue, provider } = effects;
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
      const account = await billingAccountOf(request, database);
      const customerId = await findProviderCustomer(database, account.accountId);
      // In parallel: each of the payment provider's answers takes a few tenths of a second.
      const [subscription, open, paymentMethod, pending] = await Promise.all([
        customerId === undefined ? null : provider.findSubscription(customerId).then(answerOf),
        customerId === undefined ? [] : provider.listOpenInvoices(customerId).then(answerOf),
        // As `GET …/billing/payment`, which only has the card.
        includesRole(accountCallerOf(request).role, 'billing_admin')
          ? cardOf(effects, account, customerId)
          : null,
        listPendingPurchases(database, account.accountId),
      ]);
      const held = new Map(subscription?.items.map((item) => [item.priceId, item.quantity]));
      const { currency } = catalogue;
      const plan = catalogue.plans.find((each) => each.id === account.planId);
      const due = open
        .filter((invoice) => invoice.subscriptionId !== null)
        .reduce((sum, invoice) => sum + invoice.amountRemaining, 0);
      return reply.send({
        billing: {
          rail: account.rail,
          plan: {
            id: account.planId,
            name: account.planName,
            tier: account.planTier,
            status: account.planStatus,
            interval: plan?.interval ?? null,
            amount: plan ? { amount: plan.amount, currency } : null,
          },
          subscription: subscription && {
            id: subscription.subscriptionId,
            status: subscription.status,
            current_period_start: new Date(subscription.currentPeriodStartMs).toISOString(),
            current_period_end: new Date(subscription.currentPeriodEndMs).toISOString(),
            cancel_at_period_end: subscription.isEndingAtPeriodEnd,
          },
          addons: catalogue.addons.flatMap((addon) => {
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
          balance_due: { amount: due, currency },
          next_invoice: nextInvoice(catalogue, subscription),
          payment_method: paymentMethod,
          billing_email: account.billingEmail,
          tax_ids: taxIdsOf(account),
          in_flight: pending.map((workflow) => ({
            run_id: workflow.runId,
            kind: workflow.kind,
            started_at: workflow.createdAt.toISOString(),
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
        description: '`coupons`: codes to try, commas between or each by itself.',
        params: accountParams,
        querystring: z.object({ coupons: codes.optional() }),
        response: {
          200: z.object({
            profile: z.object({
              customer_id: z.string().nullable(),
              name: z.string(),
              email: z.string(),
              address: addressShape.nullable(),
              currency: z.string(),
              net_terms_days: z
                .int()
                .meta({ description: '0: the card on file is charged at once.' }),
              tax_exempt: z.string().meta({ description: '`none`, `exempt` or `reverse`.' }),
              tax_ids: taxIds,
              credit_balance: moneyShape,
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
      const account = await billingAccountOf(request, database);
      requirePaymentMethodType(account, 'invoiced');
      const customerId = await findProviderCustomer(database, account.accountId);
      const { coupons } = request.query;
      const { currency } = catalogue;
      const customer =
        customerId === undefined ? null : answerOf(await provider.readCustomer(customerId));
      return reply.send({
        profile: {
          customer_id: customerId ?? null,
          ...contactOf(account),
          address: account.address,
          currency,
          net_terms_days: 0,
          tax_exempt: customer?.taxExempt ?? 'none',
          tax_ids: taxIdsOf(account),
          credit_balance: { amount: customer?.creditAmount ?? 0, currency },
          ...(coupons !== undefined && {
            coupons: await Promise.all(coupons.map((code) => couponToWire(effects, code))),
          }),
        },
      });
    },
  );
}

const taxIdsOf = ({ address }: BillingAccount) => (address?.tax_id ? [address.tax_id] : []);

/** Cost of the subscription's items a period; null if no invoice comes. */
function nextInvoice(
  catalogue: Catalogue,
  subscription: ProviderSubscription | null,
): { readonly date: string; readonly estimated: Money } | null {
  if (!subscription || subscription.isEndingAtPeriodEnd) return null;
  const prices = new Map([
    ...catalogue.plans.map((plan) => [plan.priceId, plan.amount] as const),
    ...catalogue.addons.map((addon) => [addon.sku, addon.amount] as const),
  ]);
  const amount = subscription.items.reduce(
    (sum, item) => sum + (prices.get(item.priceId) ?? 0) * item.quantity,
    0,
  );
  return {
    date: new Date(subscription.currentPeriodEndMs).toISOString().slice(0, 10),
    estimated: { amount, currency: catalogue.currency },
  };
}

/** The catalogue has the reduction; the payment provider decides whether the coupon may still be used. */
async function couponToWire(
  { catalogue, provider, now }: Pick<BillingEffects, 'catalogue' | 'provider' | 'now'>,
  code: string,
) {
  const coupon = findCoupon(catalogue, code, now());
  return {
    code,
    name: coupon?.name ?? null,
    percent_off: coupon?.percentOff == null ? null : String(coupon.percentOff),
    amount_off:
      coupon?.amountOff == null ? null : { amount: coupon.amountOff, currency: catalogue.currency },
    expires_at: coupon?.expiresAtMs == null ? null : new Date(coupon.expiresAtMs).toISOString(),
    valid: coupon !== undefined && answerOf(await provider.isCouponValid(code)),
  };
}
