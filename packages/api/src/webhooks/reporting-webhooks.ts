/**
 * Reporting webhooks as their owners manage them (ingestion-webhooks.md §4).
 *
 * Each call's body and answer: `webhook-fields.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { sumAttempts } from '@sluice/database/maintenance/minute-statistics';
import { listLaneStates } from '@sluice/database/delivery/lane-states';
import {
  changeWebhook,
  makeWebhook,
  removeWebhook,
} from '@sluice/database/webhooks/webhook-changes';
import { findWebhook, listWebhooks } from '@sluice/database/webhooks/webhooks';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import { PORTAL_MADE_COUNT_MAX } from '@sluice/domain/accounts/portal';
import {
  APPLICATION_ENDPOINT_COUNT_MAX,
  secretContext,
  WEBHOOK_COUNT_MAX,
} from '@sluice/domain/delivery/webhook';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';
import { changeOriginOf, environmentOf, portalOf, webhookScopeOf } from '../auth/authenticate.ts';
import { LINK_OVER } from '../auth/portal-door.ts';
import { sendProblem } from '../http/error-handling.ts';
import { atLimit, badBody, badRequest, commonFailures, missing } from '../http/fields.ts';
import { invalidRequest, limitReached, notFound, type Problem } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import {
  laneOf,
  noWebhook,
  readFailures,
  wakeChanged,
  webhookParams,
  webhookTags,
} from './webhook-route.ts';
import { registerWebhookDeliveries } from './webhook-deliveries.ts';
import { newWebhook, toChanges, toNew, toWire, webhook, webhookChanges } from './webhook-fields.ts';
import { toWire as stateToWire } from './lane-state-view.ts';
import { changesBeyondApplication, changesBeyondGrant, newBeyondGrant } from './webhook-limits.ts';
import { exposesHeaders } from '../endpoint-credentials/webhook-headers.ts';
import {
  exposesToken,
  secretHints,
  whyNoCredentials,
} from '../endpoint-credentials/endpoint-credentials.ts';

export interface ReportingWebhookEffects {
  readonly database: Database;
  /** Lets blocked deliveries be tried now; losing a call only delays them until the next reconcile loop. */
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly encryptedText: EncryptedText;
  /** Makes a secret that cannot be guessed. */
  readonly newSecret: () => string;
  readonly now: () => number;
  /** The workers' setting: how long after its first attempt a delivery is abandoned. */
  readonly giveUpAfterMs: number;
}

const HOUR_MS = 3_600_000;

/** @param what - the value to send. */
const neededAnew = (field: string, what: string): Problem =>
  invalidRequest([
    {
      field,
      reason: 'required',
      message: `${field} is required with an endpoint on another server, because the stored values were given for the former one. Send ${what}`,
      source: { pointer: `/${field}` },
    },
  ]);

export function registerReportingWebhooks(
  app: ApiServer,
  { database, encryptedText, newSecret, now, wakeLane, giveUpAfterMs }: ReportingWebhookEffects,
): void {
  app.post(
    '/v1/reporting_webhooks',
    {
      config: { capability: 'webhooks.create', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Make a reporting webhook',
        description: `At most ${WEBHOOK_COUNT_MAX} a workspace.`,
        body: newWebhook,
        response: { 200: webhook, ...badRequest, ...atLimit, ...badBody, ...commonFailures },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const grant = portalOf(request);
      const beyond = newBeyondGrant(grant, request.body) ?? whyNoCredentials(request.body, now());
      if (beyond) return sendProblem(request, reply, beyond);
      const made = await makeWebhook(
        database,
        environmentId,
        {
          ...toNew(request.body, environmentId, encryptedText),
          ...(grant && { attributeFilters: grant.attributeFilters }),
          ...(grant && grant.applicationId !== null && { events: [APPLICATION_EVENT_TYPE] }),
        },
        changeOriginOf(request),
        now(),
        {
          hintsOf: secretHints(environmentId, encryptedText),
          scope: webhookScopeOf(request),
          // With the workspace's key, a signed event of one customer would be valid at the endpoint of another.
          ...(grant && {
            signingKey: encryptedText.encrypt(newSecret(), secretContext(environmentId)),
          }),
        },
      );
      if (made === 'scope_gone') return sendProblem(request, reply, LINK_OVER);
      if (made === 'scope_full') {
        const problem =
          grant?.applicationId === null
            ? limitReached('the link', 'reporting webhooks', PORTAL_MADE_COUNT_MAX)
            : limitReached('the application', 'endpoints', APPLICATION_ENDPOINT_COUNT_MAX);
        return sendProblem(request, reply, problem);
      }
      if (made === 'too_many') {
        const problem = limitReached('the workspace', 'reporting webhooks', WEBHOOK_COUNT_MAX);
        return sendProblem(request, reply, problem);
      }
      return made
        ? reply.send(toWire(made, environmentId, encryptedText))
        : sendProblem(request, reply, notFound('the workspace of this key was'));
    },
  );

  app.get(
    '/v1/reporting_webhooks',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'List the reporting webhooks',
        description: 'All of them, oldest first.',
        querystring: z.object({
          include: z.enum(['state', 'stats', 'state,stats', 'stats,state']).optional().meta({
            description:
              'Adds `state` to each, without who disabled it, or `stats`: its attempts of the last hour.',
          }),
        }),
        response: {
          200: z.object({
            reporting_webhooks: z.array(webhook),
          }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const webhooks = await listWebhooks(database, environmentId, webhookScopeOf(request));
      const { include = '' } = request.query;
      const ids = webhooks.map(({ webhookId }) => webhookId);
      const has = (part: string): boolean => include.includes(part) && ids.length > 0;
      const [states, sums] = await Promise.all([
        has('state') ? listLaneStates(database, environmentId, ids) : [],
        has('stats') ? sumAttempts(database, environmentId, ids, now() - HOUR_MS) : [],
      ]);
      const sumOf = new Map(sums.map((each) => [each.webhookId, each]));
      const stateOf = new Map(states.map((state) => [state.webhookId, state]));
      return reply.send({
        reporting_webhooks: webhooks.map((row) => {
          const [state, sum] = [stateOf.get(row.webhookId), sumOf.get(row.webhookId)];
          return {
            ...toWire(row, environmentId, encryptedText),
            ...(state && { state: stateToWire(state, undefined, giveUpAfterMs) }),
            ...(include.includes('stats') && {
              stats: { delivered: sum?.delivered ?? 0, failed: sum?.failed ?? 0 },
            }),
          };
        }),
      });
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Get a reporting webhook',
        params: webhookParams,
        response: { 200: webhook, ...readFailures },
      },
    },
    async (request, reply) => {
      const found = await findWebhook(database, environmentOf(request), request.params.webhook_id);
      return found
        ? reply.send(toWire(found, environmentOf(request), encryptedText))
        : noWebhook(request, reply);
    },
  );

  app.put(
    '/v1/reporting_webhooks/:webhook_id',
    {
      config: { capability: 'webhooks.edit', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Change a reporting webhook',
        description:
          'After a change of the endpoint, the headers or `standard_webhooks`, or enabling, blocked deliveries are tried at once. With an endpoint on another server (scheme, host, port), stored headers must be given again.',
        params: webhookParams,
        body: webhookChanges,
        response: { 200: webhook, ...badRequest, ...missing, ...badBody, ...commonFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const grant = portalOf(request);
      const unusable = whyNoCredentials(request.body, now());
      if (unusable) return sendProblem(request, reply, unusable);
      let refusal: Problem | undefined;
      const updated = await changeWebhook(
        database,
        lane.environmentId,
        lane.webhookId,
        (before) => {
          refusal = exposesHeaders(request.body, before)
            ? neededAnew('headers', 'the values for the new one, or {}')
            : exposesToken(request.body, before, lane.environmentId, encryptedText)
              ? neededAnew('oauth2', 'the value for the new one, or null')
              : (changesBeyondApplication(request.body, before) ??
                changesBeyondGrant(grant, request.body, before));
          // The result of a refusal is not kept, so the same call is refused again.
          if (refusal) return undefined;
          return toChanges(request.body, before, lane.environmentId, encryptedText);
        },
        changeOriginOf(request),
        now(),
        { hintsOf: secretHints(lane.environmentId, encryptedText) },
      );
      if (refusal) return sendProblem(request, reply, refusal);
      if (!updated) return noWebhook(request, reply);
      if (updated.mustWake) await wakeChanged(request, lane, wakeLane);
      return reply.send(toWire(updated.webhook, lane.environmentId, encryptedText));
    },
  );

  app.delete(
    '/v1/reporting_webhooks/:webhook_id',
    {
      schema: {
        tags: webhookTags,
        summary: 'Delete a reporting webhook',
        description: 'Events that are not delivered yet are not sent any more.',
        params: webhookParams,
        response: {
          200: z.undefined(),
          ...readFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const isDeleted = await removeWebhook(
        database,
        environmentId,
        request.params.webhook_id,
        changeOriginOf(request),
        now(),
        secretHints(environmentId, encryptedText),
      );
      return isDeleted ? reply.send(undefined) : noWebhook(request, reply);
    },
  );

  registerWebhookDeliveries(app, { database });
}
