/**
 * `/v1/applications`: the customers of a workspace, and their endpoints. An endpoint is a webhook with a signing key of its own:
 * the calls below `/v1/reporting_webhooks/{webhook_id}` change it, read its deliveries and rotate its secret.
 */
import {
  APPLICATION_COUNT_MAX,
  deleteApplication,
  findApplication,
  listApplications,
  makeApplication,
  renameApplication,
  type Application,
} from '@sluice/database/webhooks/applications';
import { ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  NOT_BLANK,
  atLimit,
  badBody,
  badRequest,
  commonFailures,
  identifierText,
  missing,
  text,
} from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { limitReached, notFound } from '../http/problem.ts';
import { applicationId } from '../webhooks/webhook-fields.ts';
import {
  registerApplicationEndpoints,
  type ApplicationEndpointEffects,
} from './application-endpoints.ts';
import { registerApplicationReplays } from './application-replays.ts';

export interface ApplicationEffects extends ApplicationEndpointEffects {
  /** ULID. */
  readonly newId: () => string;
}

const NAME_LENGTH_MAX = 200;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const name = text(NAME_LENGTH_MAX).trim().min(1).meta(NOT_BLANK);
const params = z.object({ application_id: applicationId });
const application = z
  .object({ id: z.string(), name: z.string(), created_at: z.string() })
  .meta({ id: 'Application', description: 'A customer of the workspace.' });
const newApplication = z
  .strictObject({
    id: applicationId
      .optional()
      .meta({ description: 'Your own word for the customer; made for you if absent.' }),
    name,
  })
  .meta({ id: 'NewApplication', requestExamples: [{ id: 'acme', name: 'Acme' }] });
const applicationName = z
  .strictObject({ name })
  .meta({ id: 'ApplicationName', requestExamples: [{ name: 'Acme' }] });
const changed = { ...badRequest, ...missing, ...badBody, ...commonFailures };
const applicationPage = z.object({
  ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
  query: identifierText(ID_SIZE_BYTES_MAX)
    .optional()
    .meta({ description: 'Those whose ids begin with it.' }),
});
const applicationPosition = z.tuple([z.string().min(1)]).transform(([id]) => id);

const tags = ['applications'];

export function registerApplications(app: ApiServer, effects: ApplicationEffects): void {
  const { database, newId, now } = effects;

  app.post(
    '/v1/applications',
    {
      schema: {
        tags,
        summary: 'Make an application',
        description: `At most ${APPLICATION_COUNT_MAX} a workspace.`,
        body: newApplication,
        response: {
          200: application,
          ...badRequest,
          ...missing,
          ...atLimit,
          ...badBody,
          ...commonFailures,
        },
      },
    },
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
            message: 'an application with this id exists already; use another id',
          });
      }
    },
  );

  app.get(
    '/v1/applications',
    {
      schema: {
        tags,
        summary: 'List the applications',
        description: 'By their ids.',
        querystring: applicationPage,
        response: {
          200: z.object({ applications: z.array(application), next: nextToken }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
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
    {
      schema: {
        tags,
        summary: 'Get an application',
        params,
        response: { 200: application, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const { application_id: id } = request.params;
      const found = await findApplication(database, environmentOf(request), id);
      return found ? reply.send(applicationToWire(found)) : noApplication(request, reply);
    },
  );

  app.put(
    '/v1/applications/:application_id',
    {
      schema: {
        tags,
        summary: 'Rename an application',
        params,
        body: applicationName,
        response: { 200: application, ...changed },
      },
    },
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
    {
      schema: {
        tags,
        summary: 'Delete an application',
        description: 'With its endpoints and its links to the portal.',
        params,
        response: { 200: z.undefined(), ...missing, ...commonFailures },
      },
    },
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

  registerApplicationEndpoints(app, effects);
  registerApplicationReplays(app, effects);
}

const noApplication = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendProblem(request, reply, notFound('the application was'));

const applicationToWire = ({ applicationId: id, name: called, createdAt }: Application) => ({
  id,
  name: called,
  created_at: createdAt.toISOString(),
});
