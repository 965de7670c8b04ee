/**
 * `…/replays`: sends a webhook's earlier deliveries again, delivered or failed ones.
 *
 * A replay has a lane of its own: new deliveries are neither delayed nor overtaken, the deliveries of the replay keep
 * their order, and a failure is waited out as always. It takes deliveries that were delivered or abandoned at the time
 * of the request; blocked ones are sent anyway.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { ReplayKey } from '@sluice/database/replays/replay-log';
import { planReplay, startReplay } from '@sluice/database/replays/replay-start';
import {
  cancelReplay,
  findReplay,
  listAttemptsOfReplay,
  listReplays,
} from '@sluice/database/replays/replays';
import { findWebhook } from '@sluice/database/webhooks/webhooks';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf, callerNameOf, portalOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, idInPath, instant } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { notFound } from '../http/problem.ts';
import { criteriaOf, newReplay, replay, toWire } from './replay-fields.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';
import {
  bodyFailures,
  laneOf,
  noWebhook,
  readFailures,
  webhookParams,
  webhookTags,
} from './webhook-route.ts';
import { attempt as shownAttempt, attemptToWire } from './webhook-deliveries.ts';

export interface WebhookReplayEffects {
  readonly database: Database;
  readonly now: () => number;
}

const LISTED_MAX = 100;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const replayParams = z.object({ webhook_id: idInPath, replay_id: idInPath });
const answer = z.object({
  dry_run: z.boolean(),
  count: z.int().meta({ description: 'Deliveries that match.' }),
  count_is_exact: z.boolean().meta({ description: 'False: there are at least so many.' }),
  replay: replay.nullable().meta({ description: 'Null in a dry run.' }),
  // Of a dry run.
  first: instant.nullable().optional(),
  last: instant.nullable().optional(),
  by_type: z.record(z.string(), z.int()).optional(),
  takes_about_s: z.int().optional(),
});

const position = z
  .tuple([z.int().min(0), z.int().min(0).max(INTEGER_MAX)])
  .transform(([sequence, attempt]) => ({ sequence, attempt }));

export function registerWebhookReplays(
  app: ApiServer,
  { database, now }: WebhookReplayEffects,
): void {
  const noReplay = (call: FastifyRequest, reply: FastifyReply) =>
    sendProblem(call, reply, notFound('the replay was'));

  app.post(
    '/v1/reporting_webhooks/:webhook_id/replays',
    {
      config: { capability: 'deliveries.replay', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Send deliveries again',
        description:
          'Matching deliveries that are delivered or abandoned at this time, in their order, with the same bytes and ' +
          'the same `event_id`, signed anew. A replay has its own delivery queue, so new events are not delayed. One replay at a time.',
        params: webhookParams,
        body: newReplay,
        response: {
          200: answer,
          ...bodyFailures,
        },
      },
    },
    async (call, reply) => {
      const lane = laneOf(call, call.params.webhook_id);
      const wanted = criteriaOf(call.body);
      if (call.body.dry_run) {
        const plan = await planReplay(database, lane, wanted);
        if (plan.outcome === 'not_found') return noWebhook(call, reply);
        const webhook = await findWebhook(database, lane.environmentId, lane.webhookId);
        const { rate_per_second: rate } = call.body;
        return reply.send({
          dry_run: true,
          count: plan.count,
          count_is_exact: plan.isComplete,
          replay: null,
          first: plan.firstAt?.toISOString() ?? null,
          last: plan.lastAt?.toISOString() ?? null,
          by_type: plan.countsByType,
          takes_about_s: Math.ceil(
            plan.count / Math.min(rate, webhook?.rateLimitPerSecond ?? rate),
          ),
        });
      }
      const started = await startReplay(
        database,
        lane,
        {
          criteria: wanted,
          ratePerSecond: call.body.rate_per_second,
          createdBy: callerNameOf(call),
          traceparent: call.traceparent,
        },
        changeOriginOf(call),
        now(),
      );
      switch (started.outcome) {
        case 'not_found':
          return noWebhook(call, reply);
        case 'running':
          return sendProblem(call, reply, {
            code: 'conflict',
            message: 'a replay of this reporting webhook is running; cancel it or wait for its end',
          });
        case 'started':
          return reply.send({
            dry_run: false,
            count: started.count,
            count_is_exact: started.replay.total !== null,
            replay: toWire(started.replay, portalOf(call)),
          });
      }
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'List the replays of a reporting webhook',
        description: `The newest ${LISTED_MAX}, newest first. One that has ended is kept for 30 days.`,
        params: webhookParams,
        response: { 200: z.object({ replays: z.array(replay) }), ...readFailures },
      },
    },
    async (call, reply) => {
      const lane = laneOf(call, call.params.webhook_id);
      if (!(await findWebhook(database, lane.environmentId, lane.webhookId)))
        return noWebhook(call, reply);
      const replays = await listReplays(database, lane, LISTED_MAX);
      return reply.send({ replays: replays.map((row) => toWire(row, portalOf(call))) });
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Read the progress of a replay',
        params: replayParams,
        response: { 200: replay, ...readFailures },
      },
    },
    async (call, reply) => {
      const found = await findReplay(database, keyOf(call, call.params));
      return found ? reply.send(toWire(found, portalOf(call))) : noReplay(call, reply);
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id/attempts',
    {
      config: { isInPortal: true, mayLag: true },
      schema: {
        tags: webhookTags,
        summary: 'List the attempts of a replay',
        description: 'In the order of the deliveries.',
        params: replayParams,
        querystring: z.object(pageQuery(LIMIT_MAX, LIMIT_DEFAULT)),
        response: {
          200: z.object({
            attempts: z.array(shownAttempt.extend({ sequence: z.int() })),
            next: nextToken,
          }),
          ...badRequest,
          ...readFailures,
        },
      },
    },
    async (call, reply) => {
      const key = keyOf(call, call.params);
      const { start, limit } = call.query;
      const after = readStart(start, position) ?? { sequence: 0, attempt: 0 };
      const reads = readsOf(call, database);
      if (!(await findReplay(reads, key))) return noReplay(call, reply);
      const rows = await listAttemptsOfReplay(reads, key, after, limit + 1);
      const { page, next } = splitPage(rows, limit, (row) => [row.sequence, row.attempt]);
      return reply.send({
        attempts: page.map((row) => ({
          sequence: row.sequence,
          ...attemptToWire(row, portalOf(call) !== null),
        })),
        next,
      });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id/cancel',
    {
      config: { capability: 'deliveries.replay', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Cancel a replay',
        description:
          'Starts no further request; requests in flight end. A replay that has ended stays as it is.',
        params: replayParams,
        response: { 200: replay, ...readFailures },
      },
    },
    async (call, reply) => {
      const cancelled = await cancelReplay(
        database,
        keyOf(call, call.params),
        changeOriginOf(call),
        now(),
      );
      return cancelled ? reply.send(toWire(cancelled, portalOf(call))) : noReplay(call, reply);
    },
  );
}

const keyOf = (
  call: FastifyRequest,
  path: { readonly webhook_id: number; readonly replay_id: number },
): ReplayKey => ({
  environmentId: environmentOf(call),
  webhookId: path.webhook_id,
  replayId: path.replay_id,
});
