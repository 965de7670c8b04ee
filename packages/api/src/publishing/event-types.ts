/**
 * `/v1/event_types`: the types of the messages that a workspace publishes, with a description and the JSON Schema that
 * payloads must fit. Intake learns of a change within its `INTAKE_KEYS_REFRESH_MS` (`intake/src/event-types/`).
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  archiveEventType,
  deleteEventType,
  EVENT_TYPE_COUNT_MAX,
  EVENT_TYPE_SCHEMAS_LENGTH_MAX,
  putEventType,
} from '@sluice/database/webhooks/event-type-changes';
import type { PortalSession } from '@sluice/database/webhooks/portal-sessions';
import {
  findEventType,
  listEventTypes,
  type EventType,
  type EventTypeReach,
} from '@sluice/database/webhooks/event-types';
import { EVENT_NAME_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import type { Json } from '@sluice/domain/values/json';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { changeOriginOf, environmentOf, portalOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { atLimit, badBody, badRequest, commonFailures, missing, text } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { invalidRequest, limitReached, notFound } from '../http/problem.ts';
import { eventTypeName, eventTypeSchema } from './event-type-fields.ts';
import { registerPayloadCheck } from './payload-check.ts';

export interface EventTypeEffects {
  readonly database: Database;
  readonly now: () => number;
}

const DESCRIPTION_LENGTH_MAX = 1_000;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const body = z
  .strictObject({
    description: text(DESCRIPTION_LENGTH_MAX).trim().default(''),
    schema: eventTypeSchema,
  })
  .meta({
    id: 'NewEventType',
    requestExamples: [
      {
        description: 'An order was placed.',
        schema: {
          type: 'object',
          required: ['total'],
          properties: { total: { type: 'number', minimum: 0 } },
        },
      },
    ],
  });
const eventType = z
  .object({
    name: z.string(),
    version: z.int().meta({ description: 'Counts the changes of the schema.' }),
    description: z.string(),
    schema: z.unknown().meta({ description: 'JSON Schema, or null if any payload fits.' }),
    created_at: z.string(),
    archived: z.boolean(),
  })
  .meta({ id: 'EventType', description: 'A type of the messages that a workspace publishes.' });

const params = z.object({ name: eventTypeName });
const listQuery = z.object({
  ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
  include: z
    .literal('archived')
    .optional()
    .meta({ description: 'Lists archived types too. The portal never shows them.' }),
});
const version = z
  .string()
  .regex(/^[1-9]\d{0,9}$/, 'must be a positive integer')
  .transform(Number)
  .refine((number) => number <= INTEGER_MAX, { error: `must be at most ${INTEGER_MAX}` })
  .meta({ type: 'integer', minimum: 1, maximum: INTEGER_MAX });
const position = z
  .tuple([z.string().min(1).max(EVENT_NAME_SIZE_BYTES_MAX)])
  .transform(([name]) => name);

const tags = ['event types'];

/**
 * The types that the caller may see. A link to webhooks, in place of an application, shows the types that its webhooks name:
 * names of other types may show other customers. The workspace alone sets these names.
 */
const reachOf = (portal: PortalSession | null): EventTypeReach =>
  portal !== null && portal.applicationId === null
    ? { namedBy: { of: 'portal_link', portalLinkId: portal.portalLinkId } }
    : {};

export function registerEventTypes(app: ApiServer, { database, now }: EventTypeEffects): void {
  app.get(
    '/v1/event_types',
    {
      config: { isInPortal: true },
      schema: {
        tags,
        summary: 'List the event types',
        description: 'By their names.',
        querystring: listQuery,
        response: {
          200: z.object({ event_types: z.array(eventType), next: nextToken }),
          ...missing,
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const portal = portalOf(request);
      const { start, limit, include } = request.query;
      const rows = await listEventTypes(database, environmentOf(request), limit + 1, {
        after: readStart(start, position),
        withArchived: include === 'archived' && !portal,
        ...reachOf(portal),
      });
      const { page, next } = splitPage(rows, limit, (row) => [row.name]);
      return reply.send({ event_types: page.map(toWire), next });
    },
  );

  app.get(
    '/v1/event_types/:name',
    {
      config: { isInPortal: true },
      schema: {
        tags,
        summary: 'Get an event type',
        description: 'The latest version, or the version asked for.',
        params,
        querystring: z.object({ version: version.optional() }),
        response: { 200: eventType, ...badRequest, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const { name } = request.params;
      const { version: asked } = request.query;
      const portal = portalOf(request);
      const environmentId = environmentOf(request);
      const found = await findEventType(database, environmentId, name, asked, reachOf(portal));
      return found && !(found.isArchived && portal)
        ? reply.send(toWire(found))
        : sendProblem(request, reply, notFound('the event type was'));
    },
  );

  app.put(
    '/v1/event_types/:name',
    {
      schema: {
        tags,
        summary: 'Make or change an event type',
        description: `A new schema is a new version. At most ${EVENT_TYPE_COUNT_MAX} types a workspace, with schemas of ${EVENT_TYPE_SCHEMAS_LENGTH_MAX / 1_024} KB together.`,
        params,
        body,
        response: {
          200: eventType,
          ...badRequest,
          ...missing,
          ...atLimit,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const put = await putEventType(
        database,
        environmentOf(request),
        request.params.name,
        request.body,
        changeOriginOf(request),
        now(),
      );
      switch (put.outcome) {
        case 'put':
          return reply.send(toWire(put.eventType));
        case 'no_workspace':
          return sendProblem(request, reply, notFound('the workspace of this key was'));
        case 'too_many': {
          const problem = limitReached('the workspace', 'event types', EVENT_TYPE_COUNT_MAX);
          return sendProblem(request, reply, problem);
        }
        case 'too_large':
          return sendProblem(request, reply, SCHEMAS_TOO_LARGE);
      }
    },
  );

  app.delete(
    '/v1/event_types/:name',
    {
      schema: {
        tags,
        summary: 'Archive an event type',
        description: 'Publishing refuses an archived type. Putting the type again brings it back.',
        params,
        querystring: z.object({
          forget: z
            .literal('true')
            .optional()
            .meta({ description: 'Deletes the type with all its versions.' }),
        }),
        response: { 200: z.undefined(), ...badRequest, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const remove = request.query.forget ? deleteEventType : archiveEventType;
      const isRemoved = await remove(
        database,
        environmentOf(request),
        request.params.name,
        changeOriginOf(request),
        now(),
      );
      return isRemoved
        ? reply.send(undefined)
        : sendProblem(request, reply, notFound('the event type was'));
    },
  );

  registerPayloadCheck(app, { database });
}

const SCHEMAS_TOO_LARGE = invalidRequest([
  {
    field: 'schema',
    reason: 'too_large',
    message: `schema would make the schemas of the workspace longer than ${EVENT_TYPE_SCHEMAS_LENGTH_MAX / 1_024} KB together`,
    source: { pointer: '/schema' },
  },
]);

const toWire = ({ name, version: number, description, schema, madeAt, isArchived }: EventType) => ({
  name,
  version: number,
  description,
  schema: schema === null ? null : (JSON.parse(schema) as Json),
  created_at: madeAt.toISOString(),
  archived: isArchived,
});
