/**
 * `…/replays`: what a webhook was sent, or failed to be sent, sent again.
 *
 * A replay has a lane of its own: what happens meanwhile is neither delayed nor overtaken, the
 * deliveries of the replay keep their order, and a failure is waited out as always. It reaches what
 * was delivered or abandoned when it was asked for; what is still held back is sent anyway.
 */
import type { AttemptRecord, LaneKey } from '@sluice/database/lanes';
import type { ReplayCriteria, ReplayKey } from '@sluice/database/replay-log';
import type { Replay, ReplayPlan, ReplayRequest, ReplayStart } from '@sluice/database/replays';
import type { Webhook } from '@sluice/database/webhooks';
import { isSelectableEventType, SELECTABLE_EVENT_TYPES } from '@sluice/domain/reporting-event';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { environmentOf, keyNameOf } from './authenticate.ts';
import { sendProblem } from './error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  idInPath,
  missing,
  text,
  UNIX_SECONDS_MAX,
} from './fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from './page.ts';
import { notFound } from './problem.ts';
import type { ApiServer } from './server.ts';
import { attempt as shownAttempt, attemptToWire } from './webhook-deliveries.ts';

export interface WebhookReplayDependencies {
  readonly planReplay: (lane: LaneKey, criteria: ReplayCriteria) => Promise<ReplayPlan>;
  readonly startReplay: (
    lane: LaneKey,
    request: ReplayRequest,
    nowMs: number,
  ) => Promise<ReplayStart>;
  readonly listReplays: (lane: LaneKey, limit: number) => Promise<Replay[]>;
  readonly findReplay: (replay: ReplayKey) => Promise<Replay | undefined>;
  readonly cancelReplay: (replay: ReplayKey, nowMs: number) => Promise<Replay | undefined>;
  readonly listAttemptsOfReplay: (
    replay: ReplayKey,
    after: { readonly sequence: number; readonly attempt: number },
    limit: number,
  ) => Promise<AttemptRecord[]>;
  readonly findWebhook: (environmentId: number, webhookId: number) => Promise<Webhook | undefined>;
  readonly now: () => number;
}

const RATE_PER_SECOND_DEFAULT = 10;
const RATE_PER_SECOND_MAX = 1_000;
const LISTED_MAX = 100;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
const PERSON_LENGTH_MAX = 1_000;

const tags = ['reporting webhooks'];
const params = z.object({ webhook_id: idInPath });
const replayParams = z.object({ webhook_id: idInPath, replay_id: idInPath });
const unixSeconds = z.int().min(0).max(UNIX_SECONDS_MAX);
const states = z.enum(['delivered', 'abandoned']);

const criteria = z.object({
  since: unixSeconds.optional().meta({ description: 'Unix seconds: logged then or later.' }),
  until: unixSeconds.optional().meta({ description: 'Unix seconds: logged before then.' }),
  event_types: z
    .array(
      z
        .string()
        .refine((type): boolean => isSelectableEventType(type), { error: 'must be an event type' }),
    )
    .min(1)
    .max(SELECTABLE_EVENT_TYPES.length)
    .optional()
    .meta({ items: { type: 'string', enum: [...SELECTABLE_EVENT_TYPES] } }),
  states: z
    .array(states)
    .min(1)
    .max(2)
    .optional()
    .meta({ description: 'What became of the delivery; both where it is not given.' }),
  person: z
    .object({
      id: text(PERSON_LENGTH_MAX).min(1).optional(),
      email: text(PERSON_LENGTH_MAX).min(1).optional(),
      svc_id: text(PERSON_LENGTH_MAX).min(1).optional(),
    })
    .refine((person) => Object.values(person).filter((each) => each !== undefined).length === 1, {
      error: 'must hold one of id, email, svc_id',
    })
    .optional()
    .meta({ description: 'Whom the event was about: one of the identifiers that its body names.' }),
});

const request = criteria
  .extend({
    rate_per_second: z.int().min(1).max(RATE_PER_SECOND_MAX).default(RATE_PER_SECOND_DEFAULT).meta({
      description: 'Requests a second; the rate limit of the webhook, where lower, counts.',
    }),
    dry_run: z.boolean().default(false).meta({ description: 'Only counts what would be sent.' }),
  })
  .refine(
    (body) =>
      [body.since, body.until, body.event_types, body.states, body.person].some(
        (each) => each !== undefined,
      ),
    {
      error: 'must say what to replay: since, until, event_types, states or person',
    },
  )
  .meta({ id: 'NewReplay', description: 'All that is given must hold.' });

const replay = z
  .object({
    id: z.int(),
    state: z.enum(['running', 'done', 'cancelled']),
    failing: z.boolean().meta({ description: 'It waits for `next_probe_at`.' }),
    next_probe_at: z.int().nullable(),
    criteria,
    rate_per_second: z.int(),
    total: z
      .int()
      .nullable()
      .meta({ description: 'Counted when it was asked for; null: too many to count.' }),
    delivered: z.int(),
    abandoned: z.int(),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    created_by: z.string().meta({ description: 'The name of the key.' }),
    ended_at: z.int().nullable(),
  })
  .meta({ id: 'Replay' });

const answer = z.object({
  dry_run: z.boolean(),
  count: z.int().meta({ description: 'Deliveries that match.' }),
  count_is_exact: z.boolean().meta({ description: 'False: there are at least so many.' }),
  replay: replay.nullable().meta({ description: 'Null in a dry run.' }),
});

const position = z
  .tuple([z.int().min(0), z.int().min(0)])
  .transform(([sequence, attempt]) => ({ sequence, attempt }));

export function registerWebhookReplays(
  app: ApiServer,
  dependencies: WebhookReplayDependencies,
): void {
  const noWebhook = (call: FastifyRequest, reply: FastifyReply) =>
    sendProblem(call, reply, notFound('the reporting webhook was'));
  const noReplay = (call: FastifyRequest, reply: FastifyReply) =>
    sendProblem(call, reply, notFound('the replay was'));

  app.post(
    '/v1/reporting_webhooks/:webhook_id/replays',
    {
      schema: {
        tags,
        summary: 'Send deliveries again',
        description:
          'Those that are delivered or abandoned now and match, in their order, with the same bytes and the same ' +
          '`event_id`, signed anew. In a lane of its own: what happens meanwhile is not delayed. One at a time.',
        params,
        body: request,
        response: {
          200: answer,
          ...badRequest,
          ...missing,
          ...conflicting,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (call, reply) => {
      const lane = { environmentId: environmentOf(call), webhookId: call.params.webhook_id };
      const wanted = criteriaOf(call.body);
      if (call.body.dry_run) {
        const plan = await dependencies.planReplay(lane, wanted);
        if (plan.outcome === 'not_found') return noWebhook(call, reply);
        const { count, isComplete } = plan;
        return reply.send({ dry_run: true, count, count_is_exact: isComplete, replay: null });
      }
      const started = await dependencies.startReplay(
        lane,
        {
          criteria: wanted,
          ratePerSecond: call.body.rate_per_second,
          createdBy: keyNameOf(call),
        },
        dependencies.now(),
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
            replay: toWire(started.replay),
          });
      }
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays',
    {
      schema: {
        tags,
        summary: 'List the replays of a reporting webhook',
        description: `The newest ${LISTED_MAX}, newest first. One that has ended is kept for 30 days.`,
        params,
        response: { 200: z.object({ replays: z.array(replay) }), ...missing, ...commonFailures },
      },
    },
    async (call, reply) => {
      const lane = { environmentId: environmentOf(call), webhookId: call.params.webhook_id };
      if (!(await dependencies.findWebhook(lane.environmentId, lane.webhookId)))
        return noWebhook(call, reply);
      const replays = await dependencies.listReplays(lane, LISTED_MAX);
      return reply.send({ replays: replays.map(toWire) });
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id',
    {
      schema: {
        tags,
        summary: 'Tell how far a replay is',
        params: replayParams,
        response: { 200: replay, ...missing, ...commonFailures },
      },
    },
    async (call, reply) => {
      const found = await dependencies.findReplay(keyOf(call, call.params));
      return found ? reply.send(toWire(found)) : noReplay(call, reply);
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id/attempts',
    {
      schema: {
        tags,
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
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (call, reply) => {
      const key = keyOf(call, call.params);
      const { start, limit } = call.query;
      const after = readStart(start, position) ?? { sequence: 0, attempt: 0 };
      if (!(await dependencies.findReplay(key))) return noReplay(call, reply);
      const rows = await dependencies.listAttemptsOfReplay(key, after, limit + 1);
      const { page, next } = splitPage(rows, limit, (row) => [row.sequence, row.attempt]);
      return reply.send({
        attempts: page.map((row) => ({ sequence: row.sequence, ...attemptToWire(row) })),
        next,
      });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/replays/:replay_id/cancel',
    {
      schema: {
        tags,
        summary: 'Cancel a replay',
        description:
          'Starts nothing more; what is on its way ends. One that has ended stays as it is.',
        params: replayParams,
        response: { 200: replay, ...missing, ...commonFailures },
      },
    },
    async (call, reply) => {
      const cancelled = await dependencies.cancelReplay(
        keyOf(call, call.params),
        dependencies.now(),
      );
      return cancelled ? reply.send(toWire(cancelled)) : noReplay(call, reply);
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

function criteriaOf({
  since,
  until,
  event_types: eventTypes,
  states: wanted,
  person,
}: z.infer<typeof criteria>): ReplayCriteria {
  const [identifier] = (['id', 'email', 'svc_id'] as const).flatMap((kind) => {
    const value = person?.[kind];
    return value === undefined ? [] : [{ kind, value }];
  });
  return {
    since,
    until,
    eventTypes,
    states: wanted && [...new Set(wanted)],
    person: identifier,
  };
}

const toSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

const toWire = (row: Replay): z.infer<typeof replay> => ({
  id: row.replayId,
  state: row.state,
  failing: row.isFailing && row.state === 'running',
  next_probe_at: row.nextProbeAt && row.state === 'running' ? toSeconds(row.nextProbeAt) : null,
  criteria: {
    since: row.criteria.since,
    until: row.criteria.until,
    event_types: row.criteria.eventTypes && [...row.criteria.eventTypes],
    states: row.criteria.states && [...row.criteria.states],
    person: row.criteria.person && { [row.criteria.person.kind]: row.criteria.person.value },
  },
  rate_per_second: row.ratePerSecond,
  total: row.total,
  delivered: row.delivered,
  abandoned: row.abandoned,
  created_at: toSeconds(row.createdAt),
  created_by: row.createdBy,
  ended_at: row.endedAt && toSeconds(row.endedAt),
});
