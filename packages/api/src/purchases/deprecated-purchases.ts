/**
 * The deprecated ways to buy AI credits and builder credits (`account-billing.md` §9). They start the
 * same runs in the same lanes as `credits.ts`, and say on every answer what has replaced them.
 */
import type { CreditType } from '@sluice/domain/billing/catalogue';
import type { Run } from '@sluice/database/billing/runs';
import { z } from 'zod';
import {
  billingAccountOf,
  requireRail,
  setPollHeader,
  type BillingDependencies,
} from '../billing/billing.ts';
import { accountParams, purchaseStarted } from '../billing/billing-shapes.ts';
import {
  paymentShape,
  priceCreditsOf,
  startCreditPurchase,
  waitForCardPayment,
} from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, vendorFailed } from '../http/fields.ts';
import { registerCardStatus, registerInvoicedStatus } from './purchase-status.ts';
import type { ApiServer } from '../http/api-server.ts';

/** RFC 9745: since when, in Unix seconds (2026-01-01). */
const DEPRECATED_SINCE = '@1767225600';

const quantityRequest = z
  .strictObject({ quantity: z.int().min(1).max(1_000_000_000) })
  .meta({ requestExamples: [{ quantity: 1_000 }] });
const deprecated = { tags: ['billing'], deprecated: true, params: accountParams } as const;

export function registerDeprecatedPurchases(parent: ApiServer, deps: BillingDependencies): void {
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
    registerInvoiced(scope, deps);
    registerCard(scope, deps, 'ai_credits', 'llm');
    registerCard(scope, deps, 'builder_credits', 'builder');
  });
}

const statusReplaced = { deprecated: true, description: 'Replaced by `credits/purchase_status`.' };

const isOf = (type: CreditType) => (run: Run) =>
  run.content.type === 'purchase' && run.content.purchase.kind === type;

function registerInvoiced(scope: ApiServer, deps: BillingDependencies): void {
  const base = '/v1/accounts/:account_id/billing/ai_credits';
  scope.post(
    `${base}/invoiced_purchase`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        ...deprecated,
        summary: 'Buy AI credits, charging the card on file',
        description: 'Replaced by `credits/purchase` with an `llm` body.',
        body: quantityRequest,
        response: { 200: purchaseStarted, ...inFlight, ...badBody, ...accountFailures },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      requireRail(account, 'invoiced');
      const purchase = priceCreditsOf(deps, 'llm', request.body.quantity, 'quantity');
      const run = await startCreditPurchase(request, deps, account, purchase, 'invoiced');
      setPollHeader(reply, run, deps.now());
      return reply.send({ run_id: run.runId, status: 'pending' as const });
    },
  );
  registerInvoicedStatus(scope, deps, {
    path: `${base}/invoiced_purchase_status`,
    summary: 'State of AI credits bought on the invoiced rail',
    ...statusReplaced,
    isWanted: isOf('llm'),
  });
}

function registerCard(
  scope: ApiServer,
  deps: BillingDependencies,
  name: 'ai_credits' | 'builder_credits',
  type: CreditType,
): void {
  const base = `/v1/accounts/:account_id/billing/${name}`;
  scope.post(
    `${base}/payment_intent`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        ...deprecated,
        summary: `An invoice for ${type} credits, which the customer pays`,
        description: `Replaced by \`credits/purchase\` with a \`${type}\` body.`,
        body: quantityRequest,
        response: {
          200: paymentShape,
          ...badBody,
          ...vendorFailed,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      requireRail(account, 'card');
      const purchase = priceCreditsOf(deps, type, request.body.quantity, 'quantity');
      const run = await startCreditPurchase(request, deps, account, purchase, 'card');
      const payment = await waitForCardPayment(deps, run);
      return reply.send(payment);
    },
  );
  registerCardStatus(scope, deps, {
    path: `${base}/purchase_status`,
    summary: `State of ${type} credits bought on the card rail`,
    ...statusReplaced,
    isWanted: isOf(type),
  });
}
