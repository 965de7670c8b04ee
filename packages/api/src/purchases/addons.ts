/** `/v1/accounts/{account_id}/billing/addons`: recurring add-ons onto the subscription, by card only. */
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { findTwoPrices } from '@sluice/domain/billing/addon-decision';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import {
  billingAccountOf,
  refusedField,
  requirePaymentMethodType,
  setPollHeader,
  startPurchase,
} from '../billing/billing.ts';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import {
  accountParams,
  chargedOf,
  moneyShape,
  purchaseStarted,
  receiptId,
  runIdInPath,
} from '../billing/billing-shapes.ts';
import { findPurchaseToPoll } from './credit-purchases.ts';
import { accountFailures, accountReadFailures, badBody, inFlight } from '../http/fields.ts';
import { invalidRequest } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const ADDON_COUNT_MAX = 20;

function addonsRequestOf({ addons }: Catalogue) {
  const sold = addons.filter(({ isRetired }) => !isRetired);
  const sku = z
    .string()
    .regex(/^[\w-]{1,100}$/, 'must be the id of a price')
    .meta(sold.length === 0 ? {} : { enum: sold.map((price) => price.sku) });
  return z
    .strictObject({
      skus: z.strictObject({
        add: z
          .array(sku)
          .min(1)
          .max(ADDON_COUNT_MAX)
          .refine((skus) => new Set(skus).size === skus.length, {
            error: 'must not name a price twice',
          })
          .meta({ uniqueItems: true }),
        remove: z.array(z.unknown()).max(0).optional().meta({ description: 'Must be empty.' }),
      }),
    })
    .meta({
      // Of the cycle that the demo's subscription has.
      requestExamples: sold
        .filter(({ interval }) => interval === 'month')
        .slice(0, 1)
        .map((price) => ({ skus: { add: [price.sku] } })),
    });
}

const addonsStatus = z.object({
  run_id: z.string(),
  status: z.enum(['pending', 'success', 'declined', 'refused', 'failed']),
  message: z.string().nullable(),
  items: z.array(
    z.object({
      sku: z.string(),
      result: z.enum(['added', 'already_present', 'refused']),
      reason: z
        .enum(['other_price_held', 'other_billing_cycle', 'retired', 'unknown_price'])
        .nullable(),
    }),
  ),
  charged: moneyShape.nullable(),
  invoice_id: z.string().nullable(),
  receipt_id: receiptId,
  created_at: z.string(),
  completed_at: z.string().nullable(),
});

export function registerAddons(
  scope: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'catalogue'>,
): void {
  const { database, catalogue, now } = effects;
  scope.post(
    '/v1/accounts/:account_id/billing/addons',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags: ['billing'],
        summary: 'Add add-ons to the subscription',
        description:
          'The prorated amount is charged at once to the card on file. The call adds all of them or fails as a whole; poll the status. Two prices of one add-on are refused.',
        params: accountParams,
        body: addonsRequestOf(catalogue),
        response: {
          200: purchaseStarted,
          ...inFlight,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      requirePaymentMethodType(account, 'card');
      const skus = request.body.skus.add;
      const sold = new Set(catalogue.addons.map(({ sku }) => sku));
      for (const [index, sku] of skus.entries())
        if (!sold.has(sku))
          throw refusedField(
            `skus.add.${index}`,
            'unsupported',
            'must be a price of an add-on in the catalogue',
          );
      const [first, second] = findTwoPrices(catalogue, skus) ?? [];
      if (first !== undefined && second !== undefined) {
        const field = `skus.add.${skus.indexOf(second)}`;
        const message = `${field}: ${first} and ${second} are two prices of one add-on, so name one of them`;
        const source = { pointer: `/${field.replaceAll('.', '/')}` };
        throw new RequestRefused(invalidRequest([{ field, reason: 'invalid', message, source }]));
      }
      const workflow = await startPurchase(request, effects, account, {
        kind: 'addons',
        rail: account.rail,
        content: {
          type: 'addons',
          skus,
          prices: catalogue.addons
            .filter(({ sku }) => skus.includes(sku))
            .map(({ sku, addon }) => ({ sku, addon })),
        },
        sameness: { skus },
      });
      setPollHeader(reply, workflow, now());
      return reply.send({ run_id: workflow.runId, status: 'pending' as const });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/addons/status/:run_id',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'State of an add-on purchase',
        params: accountParams.extend({ run_id: runIdInPath }),
        response: { 200: addonsStatus, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const named = { runId: request.params.run_id };
      const isOfAddons = (each: PurchaseWorkflow): boolean => each.kind === 'addons';
      const workflow = await findPurchaseToPoll(request, reply, effects, named, isOfAddons);
      return reply.send({
        run_id: workflow.runId,
        status: workflow.status,
        message: workflow.message,
        items: [...(workflow.result?.items ?? [])],
        charged: chargedOf(workflow.result),
        invoice_id: workflow.result?.invoiceId ?? null,
        receipt_id: workflow.result?.receiptId ?? null,
        created_at: workflow.createdAt.toISOString(),
        completed_at: workflow.finishedAt?.toISOString() ?? null,
      });
    },
  );
}
