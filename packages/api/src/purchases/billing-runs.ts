/** `/v1/accounts/{account_id}/billing/runs`: every purchase with its timeline. Ours, beyond the spec. */
import {
  findPurchaseWorkflow,
  listPurchaseWorkflows,
} from '@sluice/database/billing/purchase-workflows';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { setPollHeader } from '../billing/billing.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import {
  accountParams,
  runIdInPath,
  workflowShape,
  workflowToWire,
} from '../billing/billing-shapes.ts';
import { accountFailures, accountReadFailures, text } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';
import { findPurchase } from './credit-purchases.ts';
import { readsOf } from '../http/replica-reads.ts';
import { waitForPurchaseWorkflow } from '../billing/start-purchase-workflow.ts';

const WAIT_SECONDS_MAX = 25;

const workflowDetail = workflowShape.extend({
  steps: z.array(
    z.object({
      step: z.string(),
      attempt: z.int(),
      state: z.enum(['intent', 'done', 'declined', 'refused', 'absent']),
      started_at: z.string(),
      ended_at: z.string().nullable(),
    }),
  ),
});

/** The last millisecond that a date can have. */
const TIME_MS_MAX = 8.64e15;
const workflowPosition = z
  .tuple([z.int().min(0).max(TIME_MS_MAX), text(64)])
  .transform(([createdAtMs, runId]) => ({ createdAtMs, runId }));

export function registerBillingRuns(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'now' | 'provider'>,
): void {
  const { database, now, provider } = effects;
  scope.get(
    '/v1/accounts/:account_id/billing/runs',
    {
      config: { access: { role: 'member' }, mayLag: true },
      schema: {
        tags: ['billing'],
        summary: 'Purchases, newest first',
        params: accountParams,
        querystring: z.object(pageQuery(100, 20)),
        response: {
          200: z.object({ runs: z.array(workflowShape), next: nextToken }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { start, limit } = request.query;
      const before = readStart(start, workflowPosition);
      const { accountId } = accountCallerOf(request);
      const rows = await listPurchaseWorkflows(
        readsOf(request, database),
        accountId,
        before,
        limit + 1,
      );
      const { page, next } = splitPage(rows, limit, (workflow) => [
        workflow.createdAt.getTime(),
        workflow.runId,
      ]);
      return reply.send({ runs: page.map(workflowToWire), next });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/runs/:run_id/payment_page',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags: ['billing'],
        summary: 'The page where a purchase is paid',
        params: accountParams.extend({ run_id: runIdInPath }),
        response: {
          200: z.object({
            url: z.string().nullable().meta({
              description:
                'At the payment provider. Null: no open invoice of the purchase is known.',
            }),
          }),
          ...accountReadFailures,
        },
      },
    },
    async (request, reply) => {
      const named = { runId: request.params.run_id };
      const workflow = await findPurchase(request, database, named, () => true);
      // A card on file is charged without an action of the customer.
      const isTheirs = workflow.rail === 'card' && workflow.status === 'pending';
      if (!isTheirs || workflow.invoiceId === null) return reply.send({ url: null });
      const found = await provider.findInvoice(workflow.invoiceId);
      const isOpen = found.outcome === 'ok' && found.value.status === 'open';
      return reply.send({ url: isOpen ? found.value.paymentPage : null });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/billing/runs/:run_id',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'A purchase with its timeline',
        description: '`wait`: answer as soon as it has ended, or after so many seconds.',
        params: accountParams.extend({ run_id: runIdInPath }),
        querystring: z.object({
          wait: z
            .string()
            .regex(/^\d{1,3}$/, 'must be a number of seconds')
            .transform(Number)
            .pipe(z.int().min(0).max(WAIT_SECONDS_MAX))
            .default(0)
            .meta({
              type: 'integer',
              minimum: 0,
              maximum: WAIT_SECONDS_MAX,
              description: 'Seconds.',
            }),
        }),
        response: {
          200: workflowDetail,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const key = { accountId, runId: request.params.run_id };
      if (!(await findPurchaseWorkflow(database, accountId, key.runId)))
        throw new RequestRefused(notFound('the purchase was'));
      const waitMs = request.query.wait * 1_000;
      const state = await waitForPurchaseWorkflow(
        database,
        key,
        waitMs,
        ({ workflow }) => workflow.status !== 'pending',
      );
      if (!state) throw new RequestRefused(notFound('the purchase was'));
      setPollHeader(reply, state.workflow, now());
      return reply.send({
        ...workflowToWire(state.workflow),
        steps: state.steps.map((step) => ({
          step: step.step,
          attempt: step.attempt,
          state: step.state,
          started_at: step.startedAt.toISOString(),
          ended_at: step.endedAt?.toISOString() ?? null,
        })),
      });
    },
  );
}
