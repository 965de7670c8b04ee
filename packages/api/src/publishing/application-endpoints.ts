/** `/v1/applications/{id}/endpoints`: the endpoints of an application are made and listed. */
import { makeWebhook } from '@sluice/database/webhooks/webhook-changes';
import { findApplication, listEndpoints } from '@sluice/database/webhooks/applications';
import { findSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import {
  APPLICATION_ENDPOINT_COUNT_MAX,
  secretContext,
  standardForm,
} from '@sluice/domain/delivery/webhook';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import type { Database } from '@sluice/database/connection/connection';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { atLimit, badBody, badRequest, commonFailures, missing } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { limitReached, notFound } from '../http/problem.ts';
import { applicationId, newWebhook, toNew, toWire, webhook } from '../webhooks/webhook-fields.ts';
import { secretHints, whyNoCredentials } from '../endpoint-credentials/endpoint-credentials.ts';

export interface ApplicationEndpointEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  /** Makes a secret that cannot be guessed. */
  readonly newSecret: () => string;
  readonly now: () => number;
}

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const tags = ['applications'];
const params = z.object({ application_id: applicationId });
const page = z.object(pageQuery(LIMIT_MAX, LIMIT_DEFAULT));
const endpointPosition = z.tuple([z.int().min(1).max(INTEGER_MAX)]).transform(([id]) => id);
/** The one answer with the secret. */
const madeEndpoint = webhook.extend({
  secret: z.string().meta({ description: 'Shown here and never again.' }),
  standard_webhooks_secret: z.string(),
});

/** The application that an endpoint belongs to decides its events. */
const newEndpoint = newWebhook
  .omit({
    events: true,
    full_resolution: true,
    with_content: true,
    with_imports: true,
    with_late: true,
    with_person_attributes: true,
  })
  .meta({
    id: 'NewEndpoint',
    description: 'The configuration of an endpoint to be made.',
    requestExamples: [
      { name: 'Orders', endpoint: 'https://acme.example/hooks', event_names: ['invoice.paid'] },
    ],
  });

export function registerApplicationEndpoints(
  app: ApiServer,
  { database, encryptedText, newSecret, now }: ApplicationEndpointEffects,
): void {
  app.post(
    '/v1/applications/:application_id/endpoints',
    {
      schema: {
        tags,
        summary: 'Make an endpoint of an application',
        description: `A webhook for the messages of the application, at most ${APPLICATION_ENDPOINT_COUNT_MAX}.`,
        params,
        body: newEndpoint,
        response: {
          200: madeEndpoint,
          ...badRequest,
          ...missing,
          ...atLimit,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const unusable = whyNoCredentials(request.body, now());
      if (unusable) return sendProblem(request, reply, unusable);
      const context = secretContext(environmentId);
      const body = {
        ...request.body,
        events: [APPLICATION_EVENT_TYPE],
        full_resolution: false,
        with_content: false,
        with_imports: false,
        with_late: false,
        with_person_attributes: false,
      };
      const made = await makeWebhook(
        database,
        environmentId,
        toNew(body, environmentId, encryptedText),
        changeOriginOf(request),
        now(),
        {
          hintsOf: secretHints(environmentId, encryptedText),
          scope: { of: 'application', applicationId: request.params.application_id },
          // With the workspace's key, a signed event of one customer would be valid at the endpoint of another.
          signingKey: encryptedText.encrypt(newSecret(), context),
        },
      );
      if (made === 'scope_full' || made === 'too_many')
        return sendProblem(
          request,
          reply,
          limitReached('the application', 'endpoints', APPLICATION_ENDPOINT_COUNT_MAX),
        );
      if (made === undefined || made === 'scope_gone') return noApplication(request, reply);
      // Read back: an earlier run of the same call may have made another one.
      const lane = { environmentId, webhookId: made.webhookId };
      const keys = await findSigningKeys(database, lane, now());
      if (!keys) return noApplication(request, reply);
      const secret = encryptedText.decrypt(keys.signingKey, context);
      return reply.send({
        ...toWire(made, environmentId, encryptedText),
        secret,
        standard_webhooks_secret: standardForm(secret, (plain) =>
          Buffer.from(plain).toString('base64'),
        ),
      });
    },
  );

  app.get(
    '/v1/applications/:application_id/endpoints',
    {
      schema: {
        tags,
        summary: 'List the endpoints of an application',
        description: 'Oldest first.',
        params,
        querystring: page,
        response: {
          200: z.object({ endpoints: z.array(webhook), next: nextToken }),
          ...badRequest,
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { application_id: id } = request.params;
      const { start, limit } = request.query;
      const after = readStart(start, endpointPosition);
      if (!(await findApplication(database, environmentId, id)))
        return noApplication(request, reply);
      const rows = await listEndpoints(database, environmentId, id, limit + 1, after);
      const { page: shown, next } = splitPage(rows, limit, (row) => [row.webhookId]);
      const endpoints = shown.map((row) => toWire(row, environmentId, encryptedText));
      return reply.send({ endpoints, next });
    },
  );
}

const noApplication = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendProblem(request, reply, notFound('the application was'));
