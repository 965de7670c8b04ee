/**
 * `GET …/state` and an operator's actions: probe now, skip the head, resend, send a test.
 *
 * Each answers the state of that moment and waits for no delivery: the lane is woken, and its state and its deliveries
 * show the result later. An action that does not fit the present state is 409.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  appendResend,
  appendTest,
  probeNow,
  skipHead,
} from '@sluice/database/replays/lane-actions';
import { findDisabling, findLaneState } from '@sluice/database/delivery/lane-states';
import { findWebhook } from '@sluice/database/webhooks/webhooks';
import { isSelectableEventType } from '@sluice/domain/delivery/reporting-event';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, agentOf, portalOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { sampleBody } from '../openapi/event-schemas.ts';
import { SELECTABLE_EVENT_TYPE } from '../openapi/event-type-names.ts';
import { idInPath, sequenceInPath, text } from '../http/fields.ts';
import { laneState, toWire, withoutStaff } from './lane-state-view.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import {
  bodyFailures,
  changeFailures,
  laneOf,
  noWebhook,
  readFailures,
  refuse,
  wakeChanged,
  webhookParams,
  webhookTags,
} from './webhook-route.ts';

export interface LaneOperationEffects {
  readonly database: Database;
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly newId: () => string;
  readonly now: () => number;
  /** The workers' setting: how long after its first attempt a delivery is abandoned. */
  readonly giveUpAfterMs: number;
}

const REASON_LENGTH_MAX = 500;
const logged = z.object({
  sequence: z.int().meta({ description: 'Of the new delivery, for `…/deliveries`.' }),
  event_id: z.string().optional(),
});

const SKIP_REFUSALS = {
  not_failing: 'the first delivery has not failed, so it cannot be skipped; wait for its attempt',
  not_head: 'another delivery is the first one; read the state again',
  in_progress: 'the first delivery is being attempted; try again when that attempt has ended',
} as const;

const APPEND_REFUSALS = {
  disabled: 'the reporting webhook is disabled; enable it first',
  not_finished: 'the delivery is still in its queue; the worker sends it without this call',
} as const;

export function registerLaneOperations(
  app: ApiServer,
  { database, now, giveUpAfterMs, newId, wakeLane }: LaneOperationEffects,
): void {
  const wake = (request: FastifyRequest, lane: LaneKey): Promise<void> =>
    wakeChanged(request, lane, wakeLane);

  async function answerDrySkip(
    request: FastifyRequest,
    reply: FastifyReply,
    lane: LaneKey,
    sequence: number,
  ): Promise<FastifyReply> {
    const webhook = await findWebhook(database, lane.environmentId, lane.webhookId);
    const found = webhook && (await findLaneState(database, lane));
    if (!found) return noWebhook(request, reply);
    if (found.state !== 'failing') return refuse(request, reply, SKIP_REFUSALS.not_failing);
    if (found.head?.sequence !== sequence) return refuse(request, reply, SKIP_REFUSALS.not_head);
    if (found.isHeld) return refuse(request, reply, SKIP_REFUSALS.in_progress);
    return reply.send({ sequence, resuming_count: found.unfinishedCount - 1 });
  }

  app.get(
    '/v1/reporting_webhooks/:webhook_id/state',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Read the state of the delivery queue of a reporting webhook',
        params: webhookParams,
        response: { 200: laneState, ...readFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const webhook = await findWebhook(database, lane.environmentId, lane.webhookId);
      const found = webhook && (await findLaneState(database, lane));
      if (!found) return noWebhook(request, reply);
      const disabling = found.isPaused ? await findDisabling(database, lane) : undefined;
      const shown = disabling && portalOf(request) ? withoutStaff(disabling) : disabling;
      return reply.send(toWire(found, shown, giveUpAfterMs));
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/probe',
    {
      config: { isInPortal: true, capability: 'deliveries.retry' },
      schema: {
        tags: webhookTags,
        summary: 'Try the head of a failing reporting webhook at once',
        description:
          'Sends the retry probe now instead of at `next_probe_at`, and the probe of a running, blocked replay too. The attempt counts like any other.',
        params: webhookParams,
        response: {
          200: z.object({
            result: z.enum(['due', 'in_progress', 'not_failing', 'disabled']).meta({
              description:
                '`due`: it is tried as soon as a worker is free. `in_progress`: a worker is at it.',
            }),
          }),
          ...readFailures,
        },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const result = await probeNow(database, lane, changeOriginOf(request), now());
      if (result === 'not_found') return noWebhook(request, reply);
      if (result === 'due') await wake(request, lane);
      return reply.send({ result });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/skip_head',
    {
      config: { capability: 'deliveries.skip', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Abandon the delivery that blocks the others',
        description:
          'It counts as abandoned; its last attempt names the key and the reason. The blocked deliveries ' +
          'resume in order. It can be resent later.',
        params: webhookParams,
        body: z
          .object({
            sequence: z
              .int()
              .min(1)
              .meta({ description: 'The head as you saw it: another one is not skipped.' }),
            reason: text(REASON_LENGTH_MAX).optional(),
            dry_run: z.boolean().optional().meta({
              description:
                'Only checks whether it could be skipped, and counts the deliveries that would resume.',
            }),
          })
          .meta({ requestExamples: [{ sequence: 2, reason: 'the receiver never takes it' }] }),
        response: {
          200: z.object({
            sequence: z.int(),
            resuming_count: z
              .int()
              .optional()
              .meta({ description: 'Of a dry run: deliveries that wait behind it.' }),
          }),
          ...bodyFailures,
        },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const { sequence, reason, dry_run: isDry } = request.body;
      if (isDry) return answerDrySkip(request, reply, lane, sequence);
      const by = `skipped ${agentOf(request)}`;
      const note = reason ? `${by}: ${reason}` : by;
      const outcome = await skipHead(
        database,
        lane,
        { sequence, note },
        changeOriginOf(request),
        now(),
      );
      if (outcome === 'not_found') return noWebhook(request, reply);
      if (outcome !== 'skipped') return refuse(request, reply, SKIP_REFUSALS[outcome]);
      await wake(request, lane);
      return reply.send({ sequence });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/deliveries/:sequence/resend',
    {
      config: { isInPortal: true, capability: 'deliveries.retry' },
      schema: {
        tags: webhookTags,
        summary: 'Send a delivery that is delivered or abandoned once more',
        description:
          'The same body with the same `event_id`, signed anew, as a delivery of its own that is tried once: ' +
          'if it fails, it is abandoned and blocks no other delivery. A failing webhook gets it after the blocked deliveries.',
        params: z.object({ webhook_id: idInPath, sequence: sequenceInPath }),
        response: { 200: logged, ...changeFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const appended = await appendResend(
        database,
        lane,
        request.params.sequence,
        changeOriginOf(request),
        now(),
      );
      if (appended.outcome === 'not_found') {
        return sendProblem(request, reply, notFound('the delivery was'));
      }
      if (appended.outcome !== 'logged')
        return refuse(request, reply, APPEND_REFUSALS[appended.outcome]);
      await wake(request, lane);
      return reply.send({ sequence: appended.sequence });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/test',
    {
      config: { isInPortal: true, capability: 'deliveries.retry' },
      schema: {
        tags: webhookTags,
        summary: 'Send a test event',
        description:
          'A sample of any event type, whether selected or not, with `"test": true` beside its `data`. It is ' +
          'tried once, after the blocked deliveries.',
        params: webhookParams,
        body: z
          .object({
            event_type: z
              .string()
              .refine(isSelectableEventType, { error: 'must be an event type' }),
          })
          .meta({
            properties: { event_type: SELECTABLE_EVENT_TYPE },
            requestExamples: [{ event_type: 'email_bounced' }],
          }),
        response: {
          200: logged,
          ...bodyFailures,
        },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const { event_type: eventType } = request.body;
      const eventId = newId();
      const occurredAtMs = now();
      const body = sampleBody(eventType, eventId, occurredAtMs);
      const test = { eventId, eventType, occurredAtMs, body };
      const appended = await appendTest(
        database,
        lane,
        test,
        changeOriginOf(request),
        occurredAtMs,
      );
      if (appended.outcome === 'not_found') return noWebhook(request, reply);
      if (appended.outcome !== 'logged')
        return refuse(request, reply, APPEND_REFUSALS[appended.outcome]);
      await wake(request, lane);
      return reply.send({ sequence: appended.sequence, event_id: appended.eventId });
    },
  );
}
