/**
 * The state of a purchase of credits, by workflow or invoice.
 *
 * Payment by invoice asks by the purchase workflow, payment by card by the invoice. The paths of packs and the
 * deprecated ones differ only in the kind of credit.
 */
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { z } from 'zod';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { accountParams, runIdText } from '../billing/billing-shapes.ts';
import { CARD_STATUSES, cardStatusOf, findPurchaseToPoll } from './credit-purchases.ts';
import { accountFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

interface StatusRoute {
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  /** True for purchases that the path is about; any other is 404. */
  readonly isWanted: (workflow: PurchaseWorkflow) => boolean;
}

/** Common part of both ways: any member may ask, about a purchase that the answer names. */
const statusOptions = <Query extends z.ZodType, Answer extends z.ZodType>(
  described: Omit<StatusRoute, 'path' | 'isWanted'>,
  querystring: Query,
  answer: Answer,
) => ({
  config: { access: { role: 'member' as const } },
  schema: {
    tags: ['billing'],
    ...described,
    params: accountParams,
    querystring,
    response: { 200: answer, ...accountFailures },
  },
});

const ofRun = z.object({ run_id: runIdText });
const runStatus = z.object({
  run_id: z.string(),
  status: z.enum(['pending', 'success', 'declined', 'failed']),
  message: z.string().nullable(),
});

export function registerInvoicedStatus(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'now'>,
  { path, isWanted, ...described }: StatusRoute,
): void {
  scope.get(path, statusOptions(described, ofRun, runStatus), async (request, reply) => {
    const named = { runId: request.query.run_id };
    const isInvoiced = (workflow: PurchaseWorkflow): boolean =>
      workflow.rail === 'invoiced' && isWanted(workflow);
    const workflow = await findPurchaseToPoll(request, reply, effects, named, isInvoiced);
    const status = workflow.status === 'refused' ? 'failed' : workflow.status;
    return reply.send({ run_id: workflow.runId, status, message: workflow.message });
  });
}

const ofInvoice = z.object({
  invoice_id: z.string().regex(/^[\w-]{1,100}$/, 'must be an invoice_id'),
});
const invoiceStatus = z.object({ invoice_id: z.string(), status: z.enum(CARD_STATUSES) });

export function registerCardStatus(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'provider' | 'now'>,
  { path, isWanted, ...described }: StatusRoute,
): void {
  scope.get(path, statusOptions(described, ofInvoice, invoiceStatus), async (request, reply) => {
    const { invoice_id: invoiceId } = request.query;
    const isByCard = (workflow: PurchaseWorkflow): boolean =>
      workflow.rail === 'card' && isWanted(workflow);
    const workflow = await findPurchaseToPoll(request, reply, effects, { invoiceId }, isByCard);
    return reply.send({ invoice_id: invoiceId, status: await cardStatusOf(effects, workflow) });
  });
}
