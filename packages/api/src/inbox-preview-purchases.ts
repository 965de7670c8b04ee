/** Buying packs of inbox previews, on either rail, and the state of such a purchase. */
import { z } from 'zod';
import {
  billingAccountOf,
  requireRail,
  setPollHeader,
  type BillingDependencies,
} from './billing.ts';
import { accountParams, moneyShape, runIdText } from './billing-shapes.ts';
import {
  cardStatusOf,
  findPurchase,
  pricePackOf,
  startCreditPurchase,
  waitForPayment,
} from './credit-purchases.ts';
import { accountFailures, badBody, inFlight, vendorFailed } from './fields.ts';
import type { ApiServer } from './server.ts';

const tags = ['billing'];
const base = '/v1/accounts/:account_id/billing/inbox_previews';

/** The server maps it to a price, so no amount is ever sent. */
const packRequest = z.strictObject({ pack: z.string().max(100) });

export const invoicedStatus = z.object({
  run_id: z.string(),
  status: z.enum(['pending', 'success', 'declined', 'failed']),
  message: z.string().nullable(),
});

export const cardPurchaseStatus = z.object({
  invoice_id: z.string(),
  status: z.enum(['granted', 'draft', 'open', 'paid', 'uncollectible', 'void']),
});

export const invoiceIdQuery = z.object({
  invoice_id: z.string().regex(/^[\w-]{1,100}$/, 'must be an invoice_id'),
});

export function registerInboxPreviewPurchases(scope: ApiServer, deps: BillingDependencies): void {
  scope.post(
    `${base}/invoiced_purchase`,
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'Buy a pack, charging the card on file',
        description:
          'The invoiced rail. The same pack while one is in flight joins it, another one is refused with 409. The pack is granted when the run succeeds.',
        params: accountParams,
        body: packRequest,
        response: {
          200: z.object({ run_id: z.string(), status: z.literal('pending'), pack: z.string() }),
          ...inFlight,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      requireRail(account, 'invoiced');
      const purchase = pricePackOf(deps, account, request.body.pack);
      const run = await startCreditPurchase(request, deps, account, purchase, 'invoiced');
      setPollHeader(reply, run, deps.now());
      return reply.send({
        run_id: run.runId,
        status: 'pending' as const,
        pack: request.body.pack,
      });
    },
  );

  scope.get(
    `${base}/invoiced_purchase_status`,
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'State of a pack bought on the invoiced rail',
        params: accountParams,
        querystring: z.object({ run_id: runIdText }),
        response: { 200: invoicedStatus, ...accountFailures },
      },
    },
    async (request, reply) => {
      const named = { runId: request.query.run_id };
      const run = await findPurchase(
        request,
        deps,
        named,
        (each) => each.kind === 'inbox_previews' && each.rail === 'invoiced',
      );
      setPollHeader(reply, run, deps.now());
      const status = run.status === 'refused' ? 'failed' : run.status;
      return reply.send({ run_id: run.runId, status, message: run.message });
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
          'The card rail. Confirm the payment with the client secret, then poll `purchase_status`.',
        params: accountParams,
        body: packRequest,
        response: {
          200: z.object({
            client_secret: z.string(),
            invoice_id: z.string(),
            pack: z.string(),
            amount: moneyShape,
          }),
          ...badBody,
          ...vendorFailed,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, deps);
      requireRail(account, 'card');
      const purchase = pricePackOf(deps, account, request.body.pack);
      const run = await startCreditPurchase(request, deps, account, purchase, 'card');
      const payment = await waitForPayment(deps, run);
      return reply.send({
        client_secret: payment.clientSecret,
        invoice_id: payment.invoiceId,
        pack: request.body.pack,
        amount: payment.amount,
      });
    },
  );

  scope.get(
    `${base}/purchase_status`,
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'State of a pack bought on the card rail',
        params: accountParams,
        querystring: invoiceIdQuery,
        response: { 200: cardPurchaseStatus, ...accountFailures },
      },
    },
    async (request, reply) => {
      const named = { invoiceId: request.query.invoice_id };
      const run = await findPurchase(
        request,
        deps,
        named,
        (each) => each.kind === 'inbox_previews' && each.rail === 'card',
      );
      setPollHeader(reply, run, deps.now());
      return reply.send({
        invoice_id: request.query.invoice_id,
        status: await cardStatusOf(deps, run),
      });
    },
  );
}
