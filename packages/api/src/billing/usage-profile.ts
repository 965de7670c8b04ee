/**
 * `/v1/accounts/{account_id}/billing/usage_profile` and `…/overage_estimate`: the account's use of its plan in the
 * present period, and the cost of the use beyond it.
 */
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import { listBalances } from '@sluice/database/credits/credit-reads';
import { countProfiles } from '@sluice/database/credits/meter-reads';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import type { Grant } from '@sluice/domain/billing/credit-ledger';
import { METERS, readMeters, type MeterLine } from '@sluice/domain/billing/meters';
import type { ProviderSubscription } from '@sluice/billing-vendor/port/payment-provider';
import type { FastifyRequest } from 'fastify';
import { findPaidPlan } from '@sluice/database/billing/earlier-purchases';
import { z } from 'zod';
import { billingAccountOf, requirePaymentMethodType } from './billing.ts';
import type { BillingEffects } from './billing-effects.ts';
import { accountParams, moneyShape } from './billing-shapes.ts';
import { accountFailures, providerFailed } from '../http/fields.ts';
import { answerOf } from './payment-methods.ts';
import { notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const meterShape = z.object({
  meter: z.enum(METERS),
  included: z.int(),
  used: z.int(),
  overage: z.int(),
  unit_amount_decimal: z.string().meta({ description: 'Minor units, as decimal digits.' }),
});
const periodShape = z.object({ start: z.string(), end: z.string() });

export function registerUsageProfile(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'provider' | 'catalogue' | 'now'>,
): void {
  const { catalogue, now } = effects;
  scope.get(
    '/v1/accounts/:account_id/billing/usage_profile',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'Usage of the amounts that the plan includes',
        params: accountParams,
        response: {
          200: z.object({
            profile: z.object({
              id: z.string(),
              customer_id: z.string().nullable(),
              status: z.enum(['active', 'suspended']),
              currency: z.string(),
              billing_period: periodShape,
              meters: z.array(meterShape),
              estimated_total: moneyShape,
              spend_limit: moneyShape.nullable(),
            }),
          }),
          ...accountFailures,
          ...providerFailed,
        },
      },
    },
    async (request, reply) => {
      const { account, customerId, subscription } = await subscriberOf(request, effects);
      const lines = await metersOf(effects, account);
      return reply.send({
        profile: {
          id: `usage_${account.accountId}`,
          customer_id: customerId ?? null,
          status: account.planStatus === 'paused' ? ('suspended' as const) : ('active' as const),
          currency: catalogue.currency,
          billing_period: periodOf(subscription, now()),
          meters: lines.map(meterToWire),
          estimated_total: totalOf(catalogue, lines),
          spend_limit: null,
        },
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/overage_estimate',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'Estimated cost of the usage beyond the plan',
        description: 'For an invoice-billed customer and its own subscription.',
        params: accountParams,
        querystring: z.object({
          subscription_id: z.string().regex(/^[\w-]{1,100}$/, 'must be the id of a subscription'),
        }),
        response: {
          200: z.object({
            subscription_id: z.string(),
            period: periodShape,
            as_of: z.string(),
            lines: z.array(meterShape.extend({ amount: moneyShape })),
            total: moneyShape,
            is_estimate: z.literal(true),
          }),
          ...accountFailures,
          ...providerFailed,
        },
      },
    },
    async (request, reply) => {
      const { account, subscription } = await subscriberOf(request, effects, 'invoiced');
      const { subscription_id: asked } = request.query;
      if (subscription?.subscriptionId !== asked)
        throw new RequestRefused(notFound('the subscription was'));
      const lines = await metersOf(effects, account);
      const nowMs = now();
      return reply.send({
        subscription_id: asked,
        period: periodOf(subscription, nowMs),
        as_of: new Date(nowMs).toISOString(),
        lines: lines.map((line) => ({ ...meterToWire(line), amount: line.amount })),
        total: totalOf(catalogue, lines),
        is_estimate: true as const,
      });
    },
  );
}

async function subscriberOf(
  request: FastifyRequest,
  { database, provider }: Pick<BillingEffects, 'database' | 'provider'>,
  rail?: BillingAccount['rail'],
) {
  const account = await billingAccountOf(request, database);
  if (rail) requirePaymentMethodType(account, rail);
  const customerId = await findProviderCustomer(database, account.accountId);
  const subscription =
    customerId === undefined ? null : answerOf(await provider.findSubscription(customerId));
  return { account, customerId, subscription };
}

async function metersOf(
  { database, catalogue, now }: Pick<BillingEffects, 'database' | 'catalogue' | 'now'>,
  account: BillingAccount,
): Promise<MeterLine[]> {
  const { accountId } = account;
  // Until a bank has paid for a plan, the one before is the paid plan.
  const plan = account.isPlanUnpaid
    ? await findPaidPlan(database, accountId)
    : catalogue.plans.find((each) => each.id === account.planId);
  const balances = await listBalances(database, accountId, ['inbox_previews', 'llm', 'builder']);
  const { start, end } = calendarMonth(now());
  const isOfMonth = ({ expiresAtMs }: Grant): boolean =>
    expiresAtMs !== null &&
    expiresAtMs > new Date(start).getTime() &&
    expiresAtMs <= new Date(end).getTime();
  const usedOf = (grants: readonly Grant[] = []) =>
    grants
      .filter((grant) => grant.pool === 'monthly_allowance' && isOfMonth(grant))
      .reduce((sum, grant) => sum + grant.used, 0);
  return readMeters(catalogue, plan, {
    profiles: await countProfiles(database, accountId),
    inbox_previews: usedOf(balances.get('inbox_previews')),
    llm: usedOf(balances.get('llm')),
    builder: usedOf(balances.get('builder')),
  });
}

const meterToWire = ({ meter, included, used, overage, unitAmountDecimal }: MeterLine) => ({
  meter,
  included,
  used,
  overage,
  unit_amount_decimal: unitAmountDecimal,
});

const totalOf = (catalogue: Catalogue, lines: readonly MeterLine[]) => ({
  amount: lines.reduce((sum, line) => sum + line.amount.amount, 0),
  currency: catalogue.currency,
});

/** Without a subscription: the calendar month, as allowances have it. */
const periodOf = (subscription: ProviderSubscription | null, nowMs: number) =>
  subscription
    ? {
        start: new Date(subscription.currentPeriodStartMs).toISOString(),
        end: new Date(subscription.currentPeriodEndMs).toISOString(),
      }
    : calendarMonth(nowMs);

function calendarMonth(nowMs: number): { readonly start: string; readonly end: string } {
  const now = new Date(nowMs);
  const at = (month: number) => new Date(Date.UTC(now.getUTCFullYear(), month, 1)).toISOString();
  return { start: at(now.getUTCMonth()), end: at(now.getUTCMonth() + 1) };
}
