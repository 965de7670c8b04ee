/**
 * `/v1/accounts/{account_id}/billing/credits`: balances, the ledger, and buying credits by either payment method type.
 */
import { listBalances, listLedger } from '@sluice/database/credits/credit-reads';
import type { Catalogue, CreditType } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { billingAccountOf, isPaidPlan, setPollHeader } from '../billing/billing.ts';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import {
  accountParams,
  balanceToWire,
  creditBalanceShape,
  pollAfterSeconds,
  receiptId,
} from '../billing/billing-shapes.ts';
import {
  balanceOf,
  cardStatusOf,
  findPurchase,
  priceCreditsOf,
  quantityOf,
  startCreditPurchase,
  startedPayment,
  waitForPayment,
} from './credit-purchases.ts';
import {
  accountFailures,
  accountReadFailures,
  badBody,
  inFlight,
  providerFailed,
} from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { notFound } from '../http/problem.ts';
import { readPurchaseHandle, writePurchaseHandle } from './purchase-handle.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

const tags = ['billing'];
const types = ['llm', 'builder'] as const;

const purchaseRequestOf = ({ credits }: Catalogue) => {
  const wanted = (type: CreditType) =>
    z.strictObject({ quantity: quantityOf(credits[type]) }).optional();
  return z
    .strictObject({ llm: wanted('llm'), builder: wanted('builder') })
    .refine((body) => (body.llm === undefined) !== (body.builder === undefined), {
      error: 'must name exactly one credit type: llm or builder',
    })
    .meta({
      ...{ minProperties: 1, maxProperties: 1 },
      requestExamples: types.map((type) => ({ [type]: { quantity: credits[type].multiple } })),
    });
};

const purchaseResponse = z.object({
  purchase_id: z.string(),
  rail: z.enum(['card', 'invoiced']),
  credit_type: z.enum(types),
  quantity: z.int(),
  status: z.enum(['pending', 'granted']).meta({
    description: "`granted`: the customer's credit with the payment provider has paid it.",
  }),
  run_id: z.string().nullable(),
  ...startedPayment,
  poll_after_seconds: z.int(),
});

const purchaseStatus = z.object({
  purchase_id: z.string(),
  rail: z.enum(['card', 'invoiced']),
  credit_type: z.enum(types),
  quantity: z.int(),
  status: z.string().meta({
    description:
      'Invoiced: pending, success, declined, failed. Card: granted, or the status of the invoice.',
  }),
  state: z.enum(['pending', 'succeeded', 'declined', 'failed']),
  message: z.string().nullable(),
  granted_at: z.string().nullable(),
  receipt_id: receiptId,
  balance: creditBalanceShape.nullable(),
});

const ledgerEntry = z.object({
  entry_id: z.int(),
  transaction: z.string(),
  reason: z.enum(['grant', 'debit', 'hold', 'capture', 'refund', 'expiry', 'reversal']),
  pool: z.enum(['monthly_allowance', 'goodwill', 'purchased']),
  grant_id: z.int(),
  from: z.string(),
  to: z.string(),
  amount: z.int(),
  available_after: z.int(),
  created_at: z.string(),
});

export function registerCredits(
  scope: ApiServer,
  effects: StartRunEffects &
    Pick<BillingEffects, 'provider' | 'catalogue' | 'secret' | 'purchaseWaitMs'>,
): void {
  const { database, catalogue, secret, now } = effects;
  scope.get(
    '/v1/accounts/:account_id/billing/credits/balance',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'Balances of all credit types',
        params: accountParams,
        response: {
          200: z.object({
            account_id: z.int(),
            as_of: z.string(),
            balances: z.array(creditBalanceShape),
          }),
          ...accountReadFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      const balances = await listBalances(database, account.accountId, types);
      const nowMs = now();
      return reply.send({
        account_id: account.accountId,
        as_of: new Date(nowMs).toISOString(),
        balances: types.map((type) =>
          balanceToWire(type, balances.get(type) ?? [], nowMs, isPaidPlan(account)),
        ),
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/credits/balance/:credit_type',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'Balance of one credit type',
        params: accountParams.extend({ credit_type: z.enum(types) }),
        response: { 200: creditBalanceShape, ...accountReadFailures },
      },
    },
    async (request, reply) =>
      reply.send(await balanceOf(request, effects, request.params.credit_type)),
  );

  scope.get(
    '/v1/accounts/:account_id/billing/credits/ledger',
    {
      config: { access: { role: 'member' }, mayLag: true },
      schema: {
        tags,
        summary: 'Every move of credits, newest first',
        description: 'The ledger of Sluice. A balance is the sum of its moves.',
        params: accountParams,
        querystring: z.object({
          credit_type: z.enum(['llm', 'builder', 'inbox_previews']).default('llm'),
          ...pageQuery(200, 50),
        }),
        response: {
          200: z.object({ entries: z.array(ledgerEntry), next: nextToken }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { credit_type: type, start, limit } = request.query;
      const before = readStart(start, z.tuple([z.literal(type), z.int()]));
      const { accountId } = accountCallerOf(request);
      const reads = readsOf(request, database);
      const rows = await listLedger(reads, accountId, type, before?.[1], limit + 1);
      const { page, next } = splitPage(rows, limit, (row) => [type, row.entryId]);
      return reply.send({
        entries: page.map((entry) => ({
          entry_id: entry.entryId,
          transaction: entry.transactionKey,
          reason: entry.reason as z.infer<typeof ledgerEntry>['reason'],
          pool: entry.pool,
          grant_id: entry.grantId,
          from: entry.from,
          to: entry.to,
          amount: entry.amount,
          available_after: entry.availableAfter,
          created_at: entry.createdAt.toISOString(),
        })),
        next,
      });
    },
  );

  scope.post(
    '/v1/accounts/:account_id/billing/credits/purchase',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'Buy credits',
        description:
          "The account's payment method type decides: `invoiced` charges the card on file, `card` answers with an invoice that the customer pays. The same purchase joins the one that is not paid yet; by invoice another one is refused with 409. A purchase that the customer's credit pays is made once: the same call within two minutes gets the same purchase.",
        params: accountParams,
        body: purchaseRequestOf(catalogue),
        response: {
          200: purchaseResponse,
          ...inFlight,
          ...badBody,
          ...providerFailed,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const type = request.body.llm === undefined ? 'builder' : 'llm';
      const wanted = request.body[type]?.quantity ?? 0;
      const account = await billingAccountOf(request, database);
      const purchase = priceCreditsOf(catalogue, type, wanted, `${type}.quantity`);
      const { accountId, rail } = account;
      const started = await startCreditPurchase(request, effects, account, purchase, rail);
      const { workflow, payment } =
        rail === 'card'
          ? await waitForPayment(effects, started)
          : { workflow: started, payment: null };
      const handle = { accountId, rail, runId: workflow.runId };
      setPollHeader(reply, workflow, now());
      return reply.send({
        purchase_id: writePurchaseHandle(secret, handle),
        rail,
        credit_type: type,
        quantity: wanted,
        status: workflow.status === 'success' ? ('granted' as const) : ('pending' as const),
        run_id: rail === 'card' ? null : workflow.runId,
        payment,
        client_secret: payment?.client_secret ?? null,
        poll_after_seconds: pollAfterSeconds(workflow, now()),
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/credits/purchase_status',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags,
        summary: 'State of a purchase of credits',
        params: accountParams,
        querystring: z.object({ purchase_id: z.string().max(300) }),
        response: {
          200: purchaseStatus,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { purchase_id: handle } = request.query;
      const named = readPurchaseHandle(secret, accountCallerOf(request).accountId, handle);
      if (!named) throw new RequestRefused(notFound('the purchase was'));
      const workflow = await findPurchase(
        request,
        database,
        named,
        (each) => each.kind === 'credits',
      );
      const { content } = workflow;
      if (content.type !== 'purchase' || content.purchase.kind === 'inbox_previews')
        throw new RequestRefused(notFound('the purchase was'));
      const type = content.purchase.kind;
      setPollHeader(reply, workflow, now());
      const states = {
        pending: 'pending',
        success: 'succeeded',
        declined: 'declined',
        refused: 'failed',
        failed: 'failed',
      } as const;
      return reply.send({
        purchase_id: handle,
        rail: workflow.rail,
        credit_type: type,
        quantity: content.purchase.quantity,
        status: workflow.rail === 'card' ? await cardStatusOf(effects, workflow) : workflow.status,
        state: states[workflow.status],
        message: workflow.message,
        granted_at:
          workflow.status === 'success' ? (workflow.finishedAt?.toISOString() ?? null) : null,
        receipt_id: workflow.result?.receiptId ?? null,
        balance: workflow.status === 'success' ? await balanceOf(request, effects, type) : null,
      });
    },
  );
}
