/**
 * `POST /v1/applications/{id}/replays`: a replay of each endpoint of an application, by the same criteria. Each is a replay of
 * its webhook from then on (`webhooks/webhook-replays.ts`), with its own progress and its own rate.
 */
import type { Database } from '@sluice/database/connection/connection';
import { partOfCall } from '@sluice/database/changes/call-parts';
import { planReplay, startReplay } from '@sluice/database/replays/replay-start';
import { findApplication, listEndpoints } from '@sluice/database/webhooks/applications';
import { APPLICATION_ENDPOINT_COUNT_MAX } from '@sluice/domain/delivery/webhook';
import { z } from 'zod';
import { callerNameOf, changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badBody, badRequest, commonFailures, missing } from '../http/fields.ts';
import { IDEMPOTENCY_KEPT_MS } from '../http/idempotency.ts';
import { notFound } from '../http/problem.ts';
import { criteriaOf, newReplay } from '../webhooks/replay-fields.ts';
import { applicationId } from '../webhooks/webhook-fields.ts';

export interface ApplicationReplayEffects {
  readonly database: Database;
  readonly now: () => number;
}

/** The fate of one endpoint's. */
const endpointReplay = z.object({
  endpoint_id: z.int(),
  status: z
    .enum(['counted', 'started', 'running'])
    .meta({ description: '`running`: another replay of the endpoint is running.' }),
  count: z.int().nullable().optional(),
  count_is_exact: z.boolean().optional(),
  replay_id: z.int().optional(),
});
type EndpointReplay = z.infer<typeof endpointReplay>;

export function registerApplicationReplays(
  app: ApiServer,
  { database, now }: ApplicationReplayEffects,
): void {
  app.post(
    '/v1/applications/:application_id/replays',
    {
      schema: {
        tags: ['applications'],
        summary: 'Send deliveries of an application again',
        description: 'A replay of each endpoint.',
        params: z.object({ application_id: applicationId }),
        body: newReplay,
        response: {
          200: z.object({ dry_run: z.boolean(), replays: z.array(endpointReplay) }),
          ...badRequest,
          ...missing,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { application_id: id } = request.params;
      if (!(await findApplication(database, environmentId, id)))
        return sendProblem(request, reply, notFound('the application was'));
      // As many as there may be, and each replay is a transaction of its own: one that cannot start leaves the others alone.
      const endpoints = await listEndpoints(
        database,
        environmentId,
        id,
        APPLICATION_ENDPOINT_COUNT_MAX,
      );
      const criteria = criteriaOf(request.body);
      const origin = changeOriginOf(request);
      // The key may come again with another body if this call fails.
      const asked = JSON.stringify(request.body);
      const replays: EndpointReplay[] = [];
      for (const { webhookId } of endpoints) {
        const lane = { environmentId, webhookId };
        if (request.body.dry_run) {
          const plan = await planReplay(database, lane, criteria);
          if (plan.outcome === 'counted')
            replays.push({
              endpoint_id: webhookId,
              status: 'counted',
              count: plan.count,
              count_is_exact: plan.isComplete,
            });
          continue;
        }
        const nowMs = now();
        // Without a key of its own, each would be started again if the process died before it answered.
        const call = await partOfCall(database, origin.call, `replay of ${webhookId} ${asked}`, {
          nowMs,
          forgottenBeforeMs: nowMs - IDEMPOTENCY_KEPT_MS,
        });
        const started = await startReplay(
          database,
          lane,
          {
            criteria,
            ratePerSecond: request.body.rate_per_second,
            createdBy: callerNameOf(request),
            traceparent: request.traceparent,
          },
          { ...origin, call },
          nowMs,
        );
        if (started.outcome === 'running')
          replays.push({ endpoint_id: webhookId, status: 'running' });
        if (started.outcome === 'started')
          replays.push({
            endpoint_id: webhookId,
            status: 'started',
            count: started.count,
            replay_id: started.replay.replayId,
          });
      }
      return reply.send({ dry_run: request.body.dry_run, replays });
    },
  );
}
