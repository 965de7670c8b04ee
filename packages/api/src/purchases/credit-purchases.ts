/**
 * Buying credits and packs: what the routes share that start a purchase and that tell its state, the deprecated ones
 * included. They have the same lanes and ledger and differ only in how they name things (`account-billing.md` §4;
 * `account-conventions.md` §4.6–4.8).
 */
import type { Database } from '@sluice/database/connection/connection';
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import { listBalances } from '@sluice/database/credits/credit-reads';
import {
  findPurchaseWorkflow,
  findPurchaseOfInvoice,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { listPurchaseSteps } from '@sluice/database/billing/purchase-steps';
import {
  pricePack,
  priceCredits,
  type Catalogue,
  type CreditPurchase,
  type CreditType,
} from '@sluice/domain/billing/catalogue';
import type { Money } from '@sluice/domain/values/money';
import type { PaymentMethodType } from '@sluice/domain/billing/purchase-workflow';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import {
  billingAccountOf,
  isPaidPlan,
  refusedField,
  requirePaymentMethodType,
  setPollHeader,
  startPurchase,
} from '../billing/billing.ts';
import type { BillingEffects, StartRunEffects } from '../billing/billing-effects.ts';
import { balanceToWire, moneyShape } from '../billing/billing-shapes.ts';
import { notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import { waitForPurchaseWorkflow } from '../billing/start-purchase-workflow.ts';

/** What is bought, or why not. @throws RequestRefused 422 */
export function priceCreditsOf(
  catalogue: Catalogue,
  type: CreditType,
  quantity: number,
  field: string,
): CreditPurchase {
  const purchase = priceCredits(catalogue, type, quantity);
  if (purchase) return purchase;
  const { multiple, quantityMax } = catalogue.credits[type];
  throw refusedField(
    field,
    'invalid',
    `must be a multiple of ${multiple} from ${multiple} to ${quantityMax}`,
  );
}

/** @throws RequestRefused 403 for a plan without previews, 422 for a pack that is not sold. */
export function pricePackOf(
  catalogue: Catalogue,
  account: BillingAccount,
  packId: string,
): CreditPurchase {
  const purchase = pricePack(catalogue, packId);
  if (!purchase)
    throw refusedField(
      'pack',
      'unsupported',
      `must be one of ${catalogue.packs.map((pack) => pack.id).join(', ')}`,
    );
  if (!isPaidPlan(account))
    throw new RequestRefused({
      code: 'plan_not_eligible',
      message: 'inbox previews need a paid plan that is neither Builder nor paused',
    });
  return purchase;
}

export async function startCreditPurchase(
  request: FastifyRequest,
  effects: StartRunEffects,
  account: BillingAccount,
  purchase: CreditPurchase,
  rail: PaymentMethodType,
): Promise<PurchaseWorkflow> {
  const isPack = purchase.kind === 'inbox_previews';
  return startPurchase(request, effects, account, {
    kind: isPack ? 'inbox_previews' : 'credits',
    rail,
    content: { type: 'purchase', purchase },
    sameness: isPack
      ? { pack: purchase.packId }
      : { type: purchase.kind, quantity: purchase.quantity },
  });
}

/** What the customer pays with. */
export const paymentShape = z.object({
  client_secret: z.string(),
  invoice_id: z.string(),
  amount: moneyShape,
});

/**
 * Payment by card: waits until the workers have made the invoice.
 *
 * @returns null where there is nothing to pay with a card: the customer's credit with the payment provider has paid it.
 * @throws RequestRefused 503, 502
 */
export async function waitForPayment(
  { database, purchaseWaitMs }: Pick<BillingEffects, 'database' | 'purchaseWaitMs'>,
  workflow: PurchaseWorkflow,
): Promise<z.infer<typeof paymentShape> | null> {
  const state = await waitForPurchaseWorkflow(
    database,
    workflow,
    purchaseWaitMs,
    ({ workflow: current, steps }) =>
      current.status !== 'pending' ||
      steps.some((step) => step.step === 'finalize' && step.state === 'done'),
  );
  const output = state?.steps.find((step) => step.step === 'finalize' && step.state === 'done')
    ?.output as { clientSecret?: string; invoiceId?: string; total?: Money } | undefined;
  if (output?.clientSecret && output.invoiceId !== undefined && output.total)
    return {
      client_secret: output.clientSecret,
      invoice_id: output.invoiceId,
      amount: output.total,
    };
  if (state?.workflow.status === 'success') return null;
  throw new RequestRefused(
    state?.workflow.status === 'failed'
      ? { code: 'vendor_refused', message: 'the payment provider refused the purchase' }
      : {
          code: 'unavailable',
          message:
            'the payment provider has not answered yet; no card was charged, and the purchase goes on; ask for its state before you buy again',
          meta: { run_id: workflow.runId },
        },
  );
}

/** `waitForPayment` for answers that are of no use without a payment. @throws RequestRefused 503, 502, 409 */
async function waitForCardPayment(
  effects: Pick<BillingEffects, 'database' | 'purchaseWaitMs'>,
  workflow: PurchaseWorkflow,
): Promise<z.infer<typeof paymentShape>> {
  const payment = await waitForPayment(effects, workflow);
  if (payment) return payment;
  throw new RequestRefused({
    code: 'nothing_to_pay',
    message: 'what the customer has in credit paid the purchase; the credits are granted',
    meta: { run_id: workflow.runId },
  });
}

/**
 * Payment by invoice: begins to charge the card on file.
 *
 * @throws RequestRefused 422 on the other payment method type, 409 while another purchase is in flight.
 */
export async function buyInvoiced(
  request: FastifyRequest,
  reply: FastifyReply,
  effects: StartRunEffects,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<PurchaseWorkflow> {
  const workflow = await buyOnRail(request, effects, 'invoiced', purchaseFor);
  setPollHeader(reply, workflow, effects.now());
  return workflow;
}

/** Payment by card: makes the invoice that the customer pays. @throws RequestRefused 422, 409, 503, 502 */
export async function buyByCard(
  request: FastifyRequest,
  effects: StartRunEffects & Pick<BillingEffects, 'purchaseWaitMs'>,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<z.infer<typeof paymentShape>> {
  const workflow = await buyOnRail(request, effects, 'card', purchaseFor);
  return waitForCardPayment(effects, workflow);
}

async function buyOnRail(
  request: FastifyRequest,
  effects: StartRunEffects,
  rail: PaymentMethodType,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<PurchaseWorkflow> {
  const account = await billingAccountOf(request, effects.database);
  requirePaymentMethodType(account, rail);
  return startCreditPurchase(request, effects, account, purchaseFor(account), rail);
}

type PurchaseName = { readonly runId: string } | { readonly invoiceId: string };

/** A purchase workflow of the caller's that bought what the route is about; 404 where there is none. */
export async function findPurchase(
  request: FastifyRequest,
  database: Database,
  named: PurchaseName,
  isWanted: (workflow: PurchaseWorkflow) => boolean,
): Promise<PurchaseWorkflow> {
  const { accountId } = accountCallerOf(request);
  const workflow =
    'runId' in named
      ? await findPurchaseWorkflow(database, accountId, named.runId)
      : await findPurchaseOfInvoice(database, accountId, named.invoiceId);
  if (!workflow || !isWanted(workflow)) throw new RequestRefused(notFound('the purchase was'));
  return workflow;
}

/** `findPurchase` for answers that may still change: says when to ask again. */
export async function findPurchaseToPoll(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: Pick<BillingEffects, 'database' | 'now'>,
  named: PurchaseName,
  isWanted: (workflow: PurchaseWorkflow) => boolean,
): Promise<PurchaseWorkflow> {
  const workflow = await findPurchase(request, database, named, isWanted);
  setPollHeader(reply, workflow, now());
  return workflow;
}

export const CARD_STATUSES = ['granted', 'draft', 'open', 'paid', 'uncollectible', 'void'] as const;
type CardStatus = (typeof CARD_STATUSES)[number];

/** `granted` once the credits are there, otherwise what the invoice says of itself. Only reads. */
export async function cardStatusOf(
  { database, provider }: Pick<BillingEffects, 'database' | 'provider'>,
  workflow: PurchaseWorkflow,
): Promise<CardStatus> {
  if (workflow.status === 'success') return 'granted';
  if (workflow.status !== 'pending') return 'void';
  if (workflow.invoiceId === null) return 'draft';
  const found = await provider.findInvoice(workflow.invoiceId);
  if (found.outcome !== 'ok') return (await isFinalized(database, workflow)) ? 'open' : 'draft';
  return found.value.status === 'deleted' ? 'void' : found.value.status;
}

/** What we know of an invoice while the payment provider does not answer. */
async function isFinalized(database: Database, workflow: PurchaseWorkflow): Promise<boolean> {
  const steps = await listPurchaseSteps(database, workflow);
  return steps.some((step) => step.step === 'finalize' && step.state === 'done');
}

export async function balanceOf(
  request: FastifyRequest,
  { database, now }: Pick<BillingEffects, 'database' | 'now'>,
  type: CreditType,
): Promise<ReturnType<typeof balanceToWire>> {
  const account = await billingAccountOf(request, database);
  const balances = await listBalances(database, account.accountId, [type]);
  return balanceToWire(type, balances.get(type) ?? [], now(), isPaidPlan(account));
}
