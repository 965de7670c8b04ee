/**
 * Buying credits and packs: common parts of the routes that start a purchase and that report its state, the deprecated
 * ones included. They have the same lanes and ledger and differ only in their names (`account-billing.md` §4;
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
import { listPurchaseSteps, type PurchaseStep } from '@sluice/database/billing/purchase-steps';
import {
  pricePack,
  priceCredits,
  type Catalogue,
  type CreditOffer,
  type CreditPurchase,
  type CreditType,
} from '@sluice/domain/billing/catalogue';
import { AppError } from '@sluice/domain/values/errors';
import type { Money } from '@sluice/domain/values/money';
import { refusalMessage } from '@sluice/domain/billing/decline-message';
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
import { requirePaymentMethod } from '../billing/require-payment-method.ts';
import { notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import { waitForPurchaseWorkflow } from '../billing/start-purchase-workflow.ts';

/** A quantity that is sold, for the document; `priceCreditsOf` checks it. */
export const quantityOf = ({ multiple, quantityMax }: CreditOffer) =>
  z
    .int()
    .min(multiple)
    .max(1_000_000_000)
    .meta({ minimum: multiple, maximum: quantityMax, multipleOf: multiple });

/** The purchase, with its price. @throws RequestRefused 422 */
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
      message:
        'inbox previews need a paid plan other than Builder, and not paused; change the plan first',
    });
  return purchase;
}

/** @throws RequestRefused 409 if there is no means of payment, or another purchase is in flight. */
export async function startCreditPurchase(
  request: FastifyRequest,
  effects: StartRunEffects & Pick<BillingEffects, 'provider'>,
  account: BillingAccount,
  purchase: CreditPurchase,
  rail: PaymentMethodType,
): Promise<PurchaseWorkflow> {
  const isPack = purchase.kind === 'inbox_previews';
  if (rail === 'invoiced') await requirePaymentMethod(effects, account, purchase.price);
  return startPurchase(request, effects, account, {
    kind: isPack ? 'inbox_previews' : 'credits',
    rail,
    content: { type: 'purchase', purchase },
    sameness: isPack
      ? { pack: purchase.packId }
      : { type: purchase.kind, quantity: purchase.quantity },
  });
}

/** The customer's means of payment. */
const paymentShape = z
  .object({
    client_secret: z.string(),
    invoice_id: z.string(),
    amount: moneyShape.meta({
      description: "The amount still due, after the customer's credit.",
    }),
  })
  .meta({ id: 'Payment' });

const GRANTED_AT_ONCE =
  "`granted`: the customer's credit with the payment provider has paid it, and the credits are there. Then `payment` and `client_secret` are null, because no confirmation is needed.";

/** Of every answer that starts a purchase of credits. */
export const startedPayment = {
  payment: paymentShape.nullable(),
  client_secret: z.string().nullable().meta({ description: 'Of `payment`.' }),
};

/** Answer to the start of a purchase by invoice. */
export const invoicedStarted = z
  .object({
    run_id: z.string(),
    status: z.enum(['pending', 'granted']).meta({ description: GRANTED_AT_ONCE }),
    // Only if the amount to pay is 0.
    payment: z.null().optional(),
    client_secret: z.null().optional(),
  })
  .meta({ id: 'InvoicedPurchase' });

export const invoicedStartedToWire = (
  workflow: PurchaseWorkflow,
): z.infer<typeof invoicedStarted> =>
  workflow.status === 'success'
    ? { run_id: workflow.runId, status: 'granted', payment: null, client_secret: null }
    : { run_id: workflow.runId, status: 'pending' };

/** Answer to a request for an invoice to pay. */
export const cardPurchase = z
  .object({
    status: z.enum(['open', 'granted']).meta({ description: GRANTED_AT_ONCE }),
    ...startedPayment,
    invoice_id: z.string().nullable(),
    amount: moneyShape.meta({ description: 'The amount still due.' }),
  })
  .meta({ id: 'CardPurchase' });

interface CardPayment {
  /** As it was at last. */
  readonly workflow: PurchaseWorkflow;
  /** Null: the customer's credit has paid it. */
  readonly payment: z.infer<typeof paymentShape> | null;
}

/**
 * Payment by card: waits until the workers have made the invoice, or the customer's credit with the payment provider has
 * paid it.
 *
 * @throws RequestRefused 409, 503, 502
 */
export async function waitForPayment(
  { database, purchaseWaitMs }: Pick<BillingEffects, 'database' | 'purchaseWaitMs'>,
  started: PurchaseWorkflow,
): Promise<CardPayment> {
  const isOpen = ({ step, state, output }: PurchaseStep): boolean =>
    step === 'finalize' &&
    state === 'done' &&
    (output as FinalizeOutput | undefined)?.clientSecret !== undefined;
  const state = await waitForPurchaseWorkflow(
    database,
    started,
    purchaseWaitMs,
    ({ workflow, steps }) => workflow.status !== 'pending' || steps.some((step) => isOpen(step)),
  );
  const workflow = state?.workflow ?? started;
  if (workflow.status === 'success') return { workflow, payment: null };
  // The worker's catalogue has another price.
  if (workflow.status === 'failed' && workflow.result?.refusal === 'amount_changed')
    throw new RequestRefused({
      code: 'amount_changed',
      message: refusalMessage('amount_changed'),
      meta: { run_id: workflow.runId },
    });
  const output = state?.steps.find((step) => isOpen(step))?.output as FinalizeOutput | undefined;
  if (workflow.status === 'pending' && output?.clientSecret)
    return {
      workflow,
      payment: {
        client_secret: output.clientSecret,
        invoice_id: output.invoiceId,
        amount: { ...output.total, amount: output.amountDue ?? output.total.amount },
      },
    };
  throw new RequestRefused(
    workflow.status === 'failed'
      ? {
          code: 'vendor_refused',
          message:
            'the payment provider refused the purchase without a charge; use another payment method',
        }
      : {
          code: 'unavailable',
          message:
            'the payment provider has not answered yet; no card was charged, and the purchase goes on; ask for its state before you buy again',
          meta: { run_id: workflow.runId },
        },
  );
}

/** The worker's record of an invoice that is ready to be paid. */
interface FinalizeOutput {
  readonly clientSecret?: string;
  readonly invoiceId: string;
  readonly total: Money;
  /** In minor units. Absent: an earlier version did not keep it. */
  readonly amountDue?: number;
}

/**
 * Payment by invoice: begins to charge the card on file, for every payment method type of the account.
 *
 * @throws RequestRefused 409 without a card, and while another purchase is in flight.
 */
export async function buyInvoiced(
  request: FastifyRequest,
  reply: FastifyReply,
  effects: StartRunEffects & Pick<BillingEffects, 'provider'>,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<PurchaseWorkflow> {
  const workflow = await buyOnRail(request, effects, 'invoiced', purchaseFor);
  setPollHeader(reply, workflow, effects.now());
  return workflow;
}

/**
 * Payment by card: makes the invoice that the customer pays, unless their credit pays it.
 *
 * @throws RequestRefused 422, 503, 502
 */
export async function buyByCard(
  request: FastifyRequest,
  effects: StartRunEffects & Pick<BillingEffects, 'provider' | 'purchaseWaitMs'>,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<z.infer<typeof cardPurchase>> {
  const started = await buyOnRail(request, effects, 'card', purchaseFor);
  const { workflow, payment } = await waitForPayment(effects, started);
  return {
    status: payment ? 'open' : 'granted',
    payment,
    client_secret: payment?.client_secret ?? null,
    invoice_id: payment?.invoice_id ?? workflow.invoiceId,
    amount: payment?.amount ?? { ...priceOf(workflow), amount: 0 },
  };
}

/** @throws AppError BUG if it buys no credits. */
function priceOf({ content }: PurchaseWorkflow): Money {
  if (content.type !== 'purchase') throw new AppError('BUG', 'the run is no purchase of credits');
  return content.purchase.price;
}

async function buyOnRail(
  request: FastifyRequest,
  effects: StartRunEffects & Pick<BillingEffects, 'provider'>,
  rail: PaymentMethodType,
  purchaseFor: (account: BillingAccount) => CreditPurchase,
): Promise<PurchaseWorkflow> {
  const account = await billingAccountOf(request, effects.database);
  // By invoice the card on file is charged, which an account of either type may have.
  if (rail === 'card') requirePaymentMethodType(account, rail);
  return startCreditPurchase(request, effects, account, purchaseFor(account), rail);
}

type PurchaseName = { readonly runId: string } | { readonly invoiceId: string };

/** A purchase workflow of the caller's that bought the route's kind of credit; 404 if it does not exist. */
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

/** `findPurchase` for answers that may still change: sets the time to ask again. */
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

/** `granted` once the credits are there, otherwise the invoice's own state. Only reads. */
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

/** Our own record of an invoice while the payment provider does not answer. */
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
