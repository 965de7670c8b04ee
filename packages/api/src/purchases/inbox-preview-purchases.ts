/** Buying packs of inbox previews, and the state of such a purchase. By either payment method type. */
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import { accountParams } from '../billing/billing-shapes.ts';
import {
  buyByCard,
  buyInvoiced,
  cardPurchase,
  invoicedStarted,
  invoicedStartedToWire,
  pricePackOf,
} from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, providerFailed } from '../http/fields.ts';
import { registerCardStatus, registerInvoicedStatus } from './purchase-status.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];
const base = '/v1/accounts/:account_id/billing/inbox_previews';

/** The server maps it to a price, so no amount is ever sent. */
const packRequestOf = ({ packs }: Catalogue) =>
  z
    .strictObject({
      pack: z
        .string()
        .max(100)
        .meta({ enum: packs.map(({ id }) => id) }),
    })
    .meta({ requestExamples: packs.slice(0, 1).map(({ id }) => ({ pack: id })) });

export function registerInboxPreviewPurchases(
  scope: ApiServer,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'catalogue' | 'purchaseWaitMs'>,
): void {
  const { catalogue } = effects;
  const packRequest = packRequestOf(catalogue);
  scope.post(
    `${base}/invoiced_purchase`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'Buy a pack, charging the card on file',
        description:
          'For accounts with a card on file, of either payment method type. The same pack joins the purchase in flight; another pack is refused with 409. The pack is granted when the run succeeds.',
        params: accountParams,
        body: packRequest,
        response: {
          200: invoicedStarted.extend({ pack: z.string() }),
          ...inFlight,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const workflow = await buyInvoiced(request, reply, effects, (account) =>
        pricePackOf(catalogue, account, request.body.pack),
      );
      return reply.send({ ...invoicedStartedToWire(workflow), pack: request.body.pack });
    },
  );

  scope.post(
    `${base}/payment_intent`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'An invoice for a pack, which the customer pays',
        description:
          "For accounts with the payment method type `card`. Confirm the payment with the client secret, then poll `purchase_status`. The same pack joins the purchase that is not paid yet. A purchase that the customer's credit pays is `granted` at once and made once: the same call within two minutes gets the same purchase.",
        params: accountParams,
        body: packRequest,
        response: {
          200: cardPurchase.extend({ pack: z.string() }),
          ...badBody,
          ...providerFailed,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const payment = await buyByCard(request, effects, (account) =>
        pricePackOf(catalogue, account, request.body.pack),
      );
      return reply.send({ ...payment, pack: request.body.pack });
    },
  );

  const isWanted = (workflow: PurchaseWorkflow): boolean => workflow.kind === 'inbox_previews';
  registerInvoicedStatus(scope, effects, {
    path: `${base}/invoiced_purchase_status`,
    summary: 'State of a pack bought by invoice',
    isWanted,
  });
  registerCardStatus(scope, effects, {
    path: `${base}/purchase_status`,
    summary: 'State of a pack bought by card',
    isWanted,
  });
}
