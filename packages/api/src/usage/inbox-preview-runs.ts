/**
 * Recording and refunding runs of inbox previews.
 *
 * For the service that makes the previews: its token needs the scope `usage:write`. Ours: the spec defines the form of
 * usage, not its source.
 */
import { findUsageOwners, type PreviewRun } from '@sluice/database/credits/inbox-preview-runs';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { billingAccountOf, isPaidPlan, refusedField } from '../billing/billing.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { EXAMPLE_ENVIRONMENT, accountParams } from '../billing/billing-shapes.ts';
import { accountFailures, badBody, conflicting } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import { recordPreviewRun, refundRecordedRun } from './record-preview-run.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];
const runsPath = '/v1/accounts/:account_id/billing/inbox_previews/runs';
const config = { access: { role: 'member', scope: 'usage:write' } } as const;
const failures = { ...badBody, ...conflicting, ...accountFailures };

/** As the caller names its job: visible ASCII. */
const JOB_ID = /^[\x21-\x7e]{1,200}$/;
const QUANTITY_MAX = 1_000_000;
const id = z.int().min(1).max(INTEGER_MAX);
const quantity = z.int().min(1).max(QUANTITY_MAX);

const runRequest = z
  .strictObject({
    preview_job_id: z.string().regex(JOB_ID, 'must be 1 to 200 visible ASCII characters'),
    environment_id: id,
    user_id: id
      .nullish()
      .meta({ description: 'The user that ran it; null or absent if there is no user.' }),
    quantity: quantity.meta({ description: 'Credits to take, one a preview.' }),
  })
  .meta({
    id: 'PreviewRunRequest',
    requestExamples: [
      {
        preview_job_id: 'job-1',
        environment_id: EXAMPLE_ENVIRONMENT,
        user_id: null,
        quantity: 12,
      },
    ],
  });

const runShape = z
  .object({
    preview_job_id: z.string(),
    date: z.string().meta({ format: 'date', description: 'The UTC day that it counts to.' }),
    occurred_at: z.string(),
    environment_id: z.int(),
    user_id: z.int().nullable(),
    quantity: z.int(),
    refunded: z.int(),
    net: z.int(),
  })
  .meta({ id: 'PreviewRun' });

export function registerInboxPreviewRuns(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'catalogue' | 'now'>,
): void {
  const { database, catalogue } = effects;
  scope.post(
    runsPath,
    {
      config,
      schema: {
        tags,
        summary: 'Record a run of inbox previews',
        description:
          'Takes its quantity out of the pools: allowance, then goodwill, then purchased. Once a job: the same call again answers the run with `recorded: false`, another workspace, user or quantity for the same job is 409 `conflict`. Refused with 409 `insufficient_credits` where the pools hold less.',
        params: accountParams,
        body: runRequest,
        response: { 200: z.object({ run: runShape, recorded: z.boolean() }), ...failures },
      },
    },
    async (request, reply) => {
      const { preview_job_id: previewJobId, environment_id: environmentId } = request.body;
      const userId = request.body.user_id ?? null;
      const { accountId } = accountCallerOf(request);
      const owners = { environmentId, userId: userId ?? undefined };
      const [account, { ownsEnvironment, hasUser }] = await Promise.all([
        billingAccountOf(request, database),
        findUsageOwners(database, accountId, owners),
      ]);
      if (!ownsEnvironment) throw environmentNotOwned();
      if (userId !== null && !hasUser)
        throw refusedField('user_id', 'invalid', 'must be the id of a user of the account');
      const outcome = await recordPreviewRun(effects, {
        accountId,
        previewJobId,
        environmentId,
        userId,
        quantity: request.body.quantity,
        hasAllowance: isPaidPlan(account),
        plan: account.isPlanUnpaid
          ? undefined
          : catalogue.plans.find((plan) => plan.id === account.planId),
        origin: originOf(request),
      });
      switch (outcome.outcome) {
        case 'recorded':
        case 'repeated':
          return reply.send({
            run: runToWire(outcome.run),
            recorded: outcome.outcome === 'recorded',
          });
        case 'conflict':
          throw new RequestRefused({
            code: 'conflict',
            message:
              'this job was recorded with another workspace, user or quantity; use another preview_job_id',
          });
        case 'insufficient':
          throw new RequestRefused({
            code: 'insufficient_credits',
            message: `the pools hold ${outcome.available} credits, fewer than the run takes; buy more, or take fewer`,
            meta: { available: outcome.available },
          });
      }
    },
  );

  scope.post(
    `${runsPath}/:preview_job_id/refund`,
    {
      config,
      schema: {
        tags,
        summary: 'Refund a run of inbox previews',
        description:
          'Returns all credits of the run, or `quantity` of them, to their pools. Credits that have expired meanwhile stay expired. A job has one refund. The same call again answers with the run and `refunded: false`; another quantity gets 409 `conflict`.',
        params: accountParams.extend({ preview_job_id: z.string().regex(JOB_ID) }),
        body: z
          .strictObject({ quantity: quantity.optional() })
          .meta({ requestExamples: [{ quantity: 1 }] })
          .nullish(),
        response: { 200: z.object({ run: runShape, refunded: z.boolean() }), ...failures },
      },
    },
    async (request, reply) => {
      const outcome = await refundRecordedRun(effects, {
        accountId: accountCallerOf(request).accountId,
        previewJobId: request.params.preview_job_id,
        quantity: request.body?.quantity,
        origin: originOf(request),
      });
      switch (outcome.outcome) {
        case 'refunded':
        case 'repeated':
          return reply.send({
            run: runToWire(outcome.run),
            refunded: outcome.outcome === 'refunded',
          });
        case 'conflict':
          throw new RequestRefused({
            code: 'conflict',
            message: `this job was refunded with a quantity of ${outcome.run.refunded}; send that quantity`,
          });
        case 'too-much':
          throw refusedField(
            'quantity',
            'invalid',
            `must be at most ${outcome.left}, the credits that the run took`,
          );
        case 'missing':
          throw new RequestRefused(notFound('the run was'));
      }
    },
  );
}

/** The same for a workspace of another account and one that does not exist. */
export const environmentNotOwned = (): RequestRefused =>
  new RequestRefused({
    code: 'environment_not_owned',
    message: 'environment_id must be the id of a workspace of the account',
    details: [
      {
        field: 'environment_id',
        reason: 'invalid',
        message: 'environment_id must be the id of a workspace of the account',
      },
    ],
  });

const runToWire = (run: PreviewRun): z.infer<typeof runShape> => ({
  preview_job_id: run.previewJobId,
  date: run.day,
  occurred_at: run.recordedAt.toISOString(),
  environment_id: run.environmentId,
  user_id: run.userId,
  quantity: run.quantity,
  refunded: run.refunded,
  net: run.quantity - run.refunded,
});
