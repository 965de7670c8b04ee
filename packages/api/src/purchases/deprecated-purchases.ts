/**
 * The deprecated ways to buy AI credits and builder credits (`account-billing.md` §9). They start the same purchase
 * workflows in the same lanes as `credits.ts`, and name their replacement in every answer.
 */
import type { CreditOffer, CreditType } from '@sluice/domain/billing/catalogue';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { z } from 'zod';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import { accountParams } from '../billing/billing-shapes.ts';
import {
  buyByCard,
  buyInvoiced,
  cardPurchase,
  invoicedStarted,
  invoicedStartedToWire,
  priceCreditsOf,
  quantityOf,
} from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, providerFailed } from '../http/fields.ts';
import { registerCardStatus, registerInvoicedStatus } from './purchase-status.ts';
import type { ApiServer } from '../http/api-server.ts';

/** RFC 9745: since when, in Unix seconds (2026-01-01). */
const DEPRECATED_SINCE = '@1767225600';

const quantityRequestOf = (offer: CreditOffer) =>
  z
    .strictObject({ quantity: quantityOf(offer) })
    .meta({ requestExamples: [{ quantity: offer.multiple }] });
const deprecated = { tags: ['billing'], deprecated: true, params: accountParams } as const;

export function registerDeprecatedPurchases(
  parent: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'catalogue' | 'purchaseWaitMs'>,
): void {
  void parent.register(async (scope: ApiServer) => {
    scope.addHook('onSend', async (request, reply) => {
      const { account_id: accountId } = request.params as { account_id?: string };
      const isPurchase = request.method === 'POST';
      const successor = `/v1/accounts/${encodeURIComponent(accountId ?? '')}/billing/credits/${isPurchase ? 'purchase' : 'purchase_status'}`;
      void reply.header('deprecation', DEPRECATED_SINCE);
      void reply.header(
        'link',
        `<${successor}>; rel="successor-version", </docs>; rel="deprecation"`,
      );
    });
    registerInvoiced(scope, effects);
    registerCard(scope, effects, 'ai_credits', 'llm');
    registerCard(scope, effects, 'builder_credits', 'builder');
  });
}

const statusReplaced = { deprecated: true, description: 'Replaced by `credits/purchase_status`.' };

const isOf = (type: CreditType) => (workflow: PurchaseWorkflow) =>
  workflow.content.type === 'purchase' && workflow.content.purchase.kind === type;

function registerInvoiced(
  scope: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'catalogue'>,
): void {
  const { catalogue } = effects;
  const base = '/v1/accounts/:account_id/billing/ai_credits';
  scope.post(
    `${base}/invoiced_purchase`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        ...deprecated,
        summary: 'Buy AI credits, charging the card on file',
        description: `For accounts with a card on file, of either payment method type. Replaced by \`credits/purchase\` with an \`llm\` body.`,
        body: quantityRequestOf(catalogue.credits.llm),
        response: { 200: invoicedStarted, ...inFlight, ...badBody, ...accountFailures },
      },
    },
    async (request, reply) => {
      const workflow = await buyInvoiced(request, reply, effects, () =>
        priceCreditsOf(catalogue, 'llm', request.body.quantity, 'quantity'),
      );
      return reply.send(invoicedStartedToWire(workflow));
    },
  );
  registerInvoicedStatus(scope, effects, {
    path: `${base}/invoiced_purchase_status`,
    summary: 'State of AI credits bought by invoice',
    ...statusReplaced,
    isWanted: isOf('llm'),
  });
}

function registerCard(
  scope: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'catalogue' | 'purchaseWaitMs'>,
  name: 'ai_credits' | 'builder_credits',
  type: CreditType,
): void {
  const { catalogue } = effects;
  const base = `/v1/accounts/:account_id/billing/${name}`;
  scope.post(
    `${base}/payment_intent`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        ...deprecated,
        summary: `An invoice for ${type} credits, which the customer pays`,
        description: `For accounts with the payment method type \`card\`. Replaced by \`credits/purchase\` with a \`${type}\` body.`,
        body: quantityRequestOf(catalogue.credits[type]),
        response: {
          200: cardPurchase,
          ...badBody,
          ...providerFailed,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const payment = await buyByCard(request, effects, () =>
        priceCreditsOf(catalogue, type, request.body.quantity, 'quantity'),
      );
      return reply.send(payment);
    },
  );
  registerCardStatus(scope, effects, {
    path: `${base}/purchase_status`,
    summary: `State of ${type} credits bought by card`,
    ...statusReplaced,
    isWanted: isOf(type),
  });
}
