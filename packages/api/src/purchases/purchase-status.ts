/**
 * The two ways to ask for the state of a purchase of credits: by its run on the invoiced rail, by its invoice on the
 * card rail. The paths of packs and the deprecated ones differ only in what was bought.
 */
import type { Run } from '@sluice/database/billing/runs';
import { z } from 'zod';
import { setPollHeader } from '../billing/billing.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { accountParams, runIdText } from '../billing/billing-shapes.ts';
import { CARD_STATUSES, cardStatusOf, findPurchase } from './credit-purchases.ts';
import { accountFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

interface StatusRoute {
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  /** True for purchases that the path is about; any other is 404. */
  readonly isWanted: (run: Run) => boolean;
}

export function registerInvoicedStatus(
  scope: ApiServer,
  { database, now }: Pick<BillingEffects, 'database' | 'now'>,
  { path, isWanted, ...schema }: StatusRoute,
): void {
  scope.get(
    path,
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        ...schema,
        params: accountParams,
        querystring: z.object({ run_id: runIdText }),
        response: {
          200: z.object({
            run_id: z.string(),
            status: z.enum(['pending', 'success', 'declined', 'failed']),
            message: z.string().nullable(),
          }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const named = { runId: request.query.run_id };
      const run = await findPurchase(
        request,
        database,
        named,
        (each) => each.rail === 'invoiced' && isWanted(each),
      );
      setPollHeader(reply, run, now());
      const status = run.status === 'refused' ? 'failed' : run.status;
      return reply.send({ run_id: run.runId, status, message: run.message });
    },
  );
}

export function registerCardStatus(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'vendor' | 'now'>,
  { path, isWanted, ...schema }: StatusRoute,
): void {
  const { database, now } = effects;
  scope.get(
    path,
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        ...schema,
        params: accountParams,
        querystring: z.object({
          invoice_id: z.string().regex(/^[\w-]{1,100}$/, 'must be an invoice_id'),
        }),
        response: {
          200: z.object({ invoice_id: z.string(), status: z.enum(CARD_STATUSES) }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { invoice_id: invoiceId } = request.query;
      const run = await findPurchase(
        request,
        database,
        { invoiceId },
        (each) => each.rail === 'card' && isWanted(each),
      );
      setPollHeader(reply, run, now());
      return reply.send({ invoice_id: invoiceId, status: await cardStatusOf(effects, run) });
    },
  );
}
