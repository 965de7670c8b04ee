/** The way from an Essentials trial to the Builder plan; the only change of plan that is not bought. */
import { endEssentialsTrial } from '@sluice/database/billing/account-plans';
import { recordChange } from '@sluice/database/changes/record-change';
import { transactOnce } from '@sluice/database/changes/transact-once';
import { z } from 'zod';
import { originOf } from '../auth/account-guard.ts';
import { billingAccountOf } from '../billing/billing.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { accountParams } from '../billing/billing-shapes.ts';
import { accountFailures, badBody, inFlight } from '../http/fields.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];

export function registerDowngrade(
  scope: ApiServer,
  { database, catalogue, now }: Pick<BillingEffects, 'database' | 'catalogue' | 'now'>,
): void {
  scope.post(
    '/v1/accounts/:account_id/billing/downgrade-to-builder',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'From an Essentials trial to the Builder plan',
        description:
          'An account that is in no Essentials trial is refused with 409. With `if_trialing` such an account stays as it is, and the answer is 200: a program that ends the trials of many accounts need not ask for each plan first.',
        params: accountParams,
        body: z
          .strictObject({
            reason: z.string().max(1_000).optional(),
            feedback: z.string().max(10_000).optional(),
            if_trialing: z
              .boolean()
              .optional()
              .describe('true: an account that is in no Essentials trial stays as it is, with 200'),
          })
          // The demo's third account has bought its plan.
          .meta({ requestExamples: [{ reason: 'the trial is over', if_trialing: true }] }),
        response: {
          200: z.undefined(),
          ...inFlight,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      const builder = catalogue.plans.find((plan) => plan.tier === 'builder');
      const origin = originOf(request);
      const isDone = (ended: string): boolean => ended === 'downgraded';
      const outcome = await transactOnce(database, origin.call, isDone, async (transaction) => {
        const ended = await endEssentialsTrial(transaction, account.accountId, builder, now());
        if (ended === 'downgraded')
          await recordChange(
            transaction,
            account.accountId,
            origin,
            {
              objectType: 'account',
              objectId: account.accountId,
              before: { plan: account.planId },
              after: { plan: builder?.id },
            },
            now(),
          );
        return ended;
      });
      const isRefused =
        outcome === 'not-allowed' || (outcome === 'no-trial' && !request.body.if_trialing);
      if (isRefused)
        throw new RequestRefused({
          code: 'plan_transition_not_allowed',
          message:
            'only an Essentials trial without a checkout in progress can move to the Builder plan; choose another plan',
        });
      return reply.send(undefined);
    },
  );
}
