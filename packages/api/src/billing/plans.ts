/** The plans of the catalogue, seen from an account's plan (`account-billing.md` §4). Bought in `plan-checkout.ts`. */
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import type { Plan, Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import { billingAccountOf } from './billing.ts';
import type { BillingEffects } from './billing-effects.ts';
import { accountParams, moneyShape } from './billing-shapes.ts';
import { accountFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];

const planShape = z.object({
  id: z.string(),
  name: z.string(),
  product_type: z.string(),
  tier: z.enum(['builder', 'essentials', 'premium', 'enterprise']),
  interval: z.enum(['month', 'year']),
  amount: moneyShape,
  currency: z.string(),
  included: z.object({ llm: z.int(), builder: z.int(), inbox_previews: z.int() }),
  features: z.array(z.string()),
  current: z.boolean(),
  change: z.enum(['upgrade', 'downgrade', 'lateral']).nullable(),
  eligible: z.boolean(),
  ineligible_reason: z.string().nullable(),
  addons: z.array(
    z.object({
      sku: z.string(),
      name: z.string(),
      amount: moneyShape,
      interval: z.enum(['month', 'year']),
      retired: z.boolean(),
    }),
  ),
});

export function registerPlans(
  scope: ApiServer,
  { database, catalogue }: Pick<BillingEffects, 'database' | 'catalogue'>,
): void {
  scope.get(
    '/v1/accounts/:account_id/billing/plans',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'Plans that can be bought',
        params: accountParams,
        querystring: z.object({ product_type: z.string().max(100).optional() }),
        response: { 200: z.object({ plans: z.array(planShape) }), ...accountFailures },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      const { product_type: type } = request.query;
      const plans = catalogue.plans.filter(
        (plan) =>
          (type === undefined || plan.productType === type) &&
          (!plan.isRetired || plan.id === account.planId),
      );
      return reply.send({ plans: plans.map((plan) => planToWire(catalogue, account, plan)) });
    },
  );
}

const TIERS = ['builder', 'essentials', 'premium', 'enterprise'];

/** @param step - number of tiers up. Below 0: down. */
function changeOf(step: number) {
  if (step === 0) return 'lateral';
  return step > 0 ? 'upgrade' : 'downgrade';
}

function planToWire(
  catalogue: Catalogue,
  account: BillingAccount,
  plan: Plan,
): z.infer<typeof planShape> {
  const { currency } = catalogue;
  const isCurrent = plan.id === account.planId;
  const step = TIERS.indexOf(plan.tier) - TIERS.indexOf(account.planTier);
  return {
    id: plan.id,
    name: plan.name,
    product_type: plan.productType,
    tier: plan.tier,
    interval: plan.interval,
    amount: { amount: plan.amount, currency },
    currency,
    included: plan.included,
    features: [...plan.features],
    current: isCurrent,
    change: isCurrent ? null : changeOf(step),
    eligible: !isCurrent,
    ineligible_reason: isCurrent ? 'the account is on this plan' : null,
    addons: catalogue.addons
      .filter((addon) => addon.interval === plan.interval)
      .map((addon) => ({
        sku: addon.sku,
        name: addon.name,
        amount: { amount: addon.amount, currency },
        interval: addon.interval,
        retired: addon.isRetired,
      })),
  };
}
