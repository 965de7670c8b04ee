/**
 * The deprecated ways to buy AI credits and builder credits (`account-billing.md` §9). They start the
 * same runs in the same lanes as `credits.ts`, and say on every answer what has replaced them.
 */
import type { CreditType } from '@sluice/domain/catalogue';
import type { Run } from '@sluice/database/runs';
import { z } from 'zod';
import {
  billingAccountOf,
  requireRail,
  setPollHeader,
  type BillingDependencies,
} from './billing.ts';
import { accountParams, moneyShape, purchaseStarted, runIdText } from './billing-shapes.ts';
import {
  cardStatusOf,
  findPurchase,
  priceCreditsOf,
  startCreditPurchase,
  waitForPayment,
} from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, vendorFailed } from './fields.ts';
import { cardPurchaseStatus, invoicedStatus, invoiceIdQuery } from './inbox-preview-purchases.ts';
import type { ApiServer } from './server.ts';

/** RFC 9745: since when, in Unix seconds (2026-01-01). */
const DEPRECATED_SINCE = '@1767225600';

const quantityRequest = z.strictObject({ quantity: z.int().min(1).max(1_000_000_000) });
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

const isOf = (type: CreditType, rail: Run['rail']) => (run: Run) =>
  run.rail === rail && run.content.type === 'purchase' && run.content.purchase.kind === type;

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
  scope.get(
    `${base}/invoiced_purchase_status`,
    {
      config: { access: { role: 'member' } },
      schema: {
        ...deprecated,
        summary: 'State of AI credits bought on the invoiced rail',
        description: 'Replaced by `credits/purchase_status`.',
        querystring: z.object({ run_id: runIdText }),
        response: { 200: invoicedStatus, ...accountFailures },
      },
    },
    async (request, reply) => {
      const named = { runId: request.query.run_id };
      const run = await findPurchase(request, deps, named, isOf('llm', 'invoiced'));
      setPollHeader(reply, run, deps.now());
      const status = run.status === 'refused' ? 'failed' : run.status;
      return reply.send({ run_id: run.runId, status, message: run.message });
    },
  );
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
          200: z.object({ client_secret: z.string(), invoice_id: z.string(), amount: moneyShape }),
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
      const payment = await waitForPayment(deps, run);
      return reply.send({
        client_secret: payment.clientSecret,
        invoice_id: payment.invoiceId,
        amount: payment.amount,
      });
    },
  );
  scope.get(
    `${base}/purchase_status`,
    {
      config: { access: { role: 'member' } },
      schema: {
        ...deprecated,
        summary: `State of ${type} credits bought on the card rail`,
        description: 'Replaced by `credits/purchase_status`.',
        querystring: invoiceIdQuery,
        response: { 200: cardPurchaseStatus, ...accountFailures },
      },
    },
    async (request, reply) => {
      const named = { invoiceId: request.query.invoice_id };
      const run = await findPurchase(request, deps, named, isOf(type, 'card'));
      setPollHeader(reply, run, deps.now());
      return reply.send({
        invoice_id: request.query.invoice_id,
        status: await cardStatusOf(deps, run),
      });
    },
  );
}
