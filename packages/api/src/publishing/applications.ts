/**
 * `/v1/applications`: the customers of a workspace, and their endpoints. An endpoint is a webhook with a signing key of its own:
 * the calls below `/v1/reporting_webhooks/{webhook_id}` change it, read its deliveries and rotate its secret.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  APPLICATION_COUNT_MAX,
  deleteApplication,
  findApplication,
  listApplications,
  listEndpoints,
  makeApplication,
  renameApplication,
  type Application,
} from '@sluice/database/webhooks/applications';
import { makeWebhook } from '@sluice/database/webhooks/webhook-changes';
import { findSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import {
  APPLICATION_ENDPOINT_COUNT_MAX,
  secretContext,
  standardForm,
} from '@sluice/domain/delivery/webhook';
import { ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { identifierText, text } from '../http/fields.ts';
import { pageQuery, readStart, splitPage } from '../http/page.ts';
import { limitReached, notFound } from '../http/problem.ts';
import { applicationId, newWebhook, toNew, toWire } from '../webhooks/webhook-fields.ts';
import { secretHints, whyNoCredentials } from '../endpoint-credentials/endpoint-credentials.ts';
import { registerApplicationReplays } from './application-replays.ts';

export interface ApplicationEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  /** Makes a secret that nobody can guess. */
  readonly newSecret: () => string;
  /** ULID. */
  readonly newId: () => string;
  readonly now: () => number;
}

const NAME_LENGTH_MAX = 200;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const name = text(NAME_LENGTH_MAX).trim().min(1);
const params = z.object({ application_id: applicationId });
const page = z.object(pageQuery(LIMIT_MAX, LIMIT_DEFAULT));
const applicationPage = page.extend({
  /** What the id begins with. */
  query: identifierText(ID_SIZE_BYTES_MAX).optional(),
});
const applicationPosition = z.tuple([z.string().min(1)]).transform(([id]) => id);
const endpointPosition = z.tuple([z.int().min(1).max(INTEGER_MAX)]).transform(([id]) => id);

/** What an endpoint is told of is decided by the application that it belongs to. */
const newEndpoint = newWebhook.omit({
  events: true,
  full_resolution: true,
  with_content: true,
  with_imports: true,
  with_late: true,
  with_person_attributes: true,
});

export function registerApplications(app: ApiServer, effects: ApplicationEffects): void {
  const { database, newId, now } = effects;

  app.post(
    '/v1/applications',
    { schema: { hide: true, body: z.strictObject({ id: applicationId.optional(), name }) } },
    async (request, reply) => {
      const { id = newId(), name: given } = request.body;
      const made = await makeApplication(
        database,
        environmentOf(request),
        { applicationId: id, name: given },
        changeOriginOf(request),
        now(),
      );
      switch (made.outcome) {
        case 'made':
          return reply.send(applicationToWire(made.application));
        case 'no_workspace':
          return sendProblem(request, reply, notFound('the workspace of this key was'));
        case 'too_many': {
          const problem = limitReached('the workspace', 'applications', APPLICATION_COUNT_MAX);
          return sendProblem(request, reply, problem);
        }
        case 'taken':
          return sendProblem(request, reply, {
            code: 'conflict',
            message: 'there is an application with this id',
          });
      }
    },
  );

  app.get(
    '/v1/applications',
    { schema: { hide: true, querystring: applicationPage } },
    async (request, reply) => {
      const { start, limit, query } = request.query;
      const after = readStart(start, applicationPosition);
      const rows = await listApplications(
        database,
        environmentOf(request),
        limit + 1,
        after,
        query,
      );
      const { page: shown, next } = splitPage(rows, limit, (row) => [row.applicationId]);
      return reply.send({ applications: shown.map(applicationToWire), next });
    },
  );

  app.get(
    '/v1/applications/:application_id',
    { schema: { hide: true, params } },
    async (request, reply) => {
      const { application_id: id } = request.params;
      const found = await findApplication(database, environmentOf(request), id);
      return found ? reply.send(applicationToWire(found)) : noApplication(request, reply);
    },
  );

  app.put(
    '/v1/applications/:application_id',
    { schema: { hide: true, params, body: z.strictObject({ name }) } },
    async (request, reply) => {
      const renamed = await renameApplication(
        database,
        environmentOf(request),
        { applicationId: request.params.application_id, name: request.body.name },
        changeOriginOf(request),
        now(),
      );
      return renamed ? reply.send(applicationToWire(renamed)) : noApplication(request, reply);
    },
  );

  app.delete(
    '/v1/applications/:application_id',
    { schema: { hide: true, params } },
    async (request, reply) => {
      const isDeleted = await deleteApplication(
        database,
        environmentOf(request),
        request.params.application_id,
        changeOriginOf(request),
        now(),
      );
      return isDeleted ? reply.send(undefined) : noApplication(request, reply);
    },
  );

  registerEndpoints(app, effects);
  registerApplicationReplays(app, effects);
}

function registerEndpoints(
  app: ApiServer,
  { database, encryptedText, newSecret, now }: ApplicationEffects,
): void {
  app.post(
    '/v1/applications/:application_id/endpoints',
    { schema: { hide: true, params, body: newEndpoint } },
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
          // With the workspace's, what one customer is sent would be valid at the endpoint of another.
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
    { schema: { hide: true, params, querystring: page } },
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

const applicationToWire = ({ applicationId: id, name: called, createdAt }: Application) => ({
  id,
  name: called,
  created_at: createdAt.toISOString(),
});
