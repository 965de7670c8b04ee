/**
 * People as the app API shows them (ingestion-conventions.md §5.3): found by email, and one
 * person's attributes, activities and relationships.
 *
 * `svc` names are ours; each has its `cio` alias beside it, because real clients read that one.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listActivities } from '@sluice/database/people/activity-reads';
import {
  type PersonProfile,
  findPersonProfile,
  listDevices,
  listRelationships,
} from '@sluice/database/people/customer-reads';
import { EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { storedValue } from '@sluice/domain/operations/slice-keys';
import { personIdOf } from '@sluice/domain/values/svc-id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import {
  activity,
  customer,
  customerIdentifiers,
  relationship,
  toActivity,
  toCustomer,
  toIdentifiers,
  toRelationship,
} from './customer-view.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, commonFailures, missing, text } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import type { Problem } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface CustomerEffects {
  readonly database: Database;
  readonly now: () => number;
}

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 10;
/** Events older than 30 days are not shown in activity logs (ingestion-webhooks.md §8). */
const SHOWN_FOR_MS = 30 * 24 * 3600 * 1000;
const FILTER_LENGTH_MAX = 2_000;

const ID_TYPES = ['id', 'email', 'svc_id', 'cio_id'] as const;

const params = z.object({ identifier: text(Math.max(EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX)) });
const idType = {
  id_type: z.enum(ID_TYPES).default('id').meta({
    description:
      'What the identifier in the path is. A svc_id may be written with or without `svc_` or `cio_` before it.',
  }),
};

const activityPosition = z
  .tuple([z.string().regex(/^\d{1,18}$/), text(FILTER_LENGTH_MAX)])
  .transform(([occurredAtMicros, eventId]) => ({ occurredAtMicros, eventId }));
const relationshipPosition = z
  .tuple([z.string().regex(/^\d{1,18}$/)])
  .transform(([objectNumber]) => objectNumber);

const tags = ['customers'];

export function registerCustomers(app: ApiServer, { database, now }: CustomerEffects): void {
  app.get(
    '/v1/customers',
    {
      schema: {
        tags,
        summary: 'Find people by email',
        description: 'Letter case does not count. Nobody found is an empty list.',
        querystring: z.object({ email: text(FILTER_LENGTH_MAX).min(1) }),
        response: {
          200: z.object({ results: z.array(customerIdentifiers) }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const person = await findPersonProfile(database, {
        environmentId: environmentOf(request),
        kind: 'email',
        value: storedValue('email', request.query.email),
      });
      return reply.send({ results: person ? [toIdentifiers(person)] : [] });
    },
  );

  app.get(
    '/v1/customers/:identifier/attributes',
    {
      schema: {
        tags,
        summary: "A person's attributes and devices",
        params,
        querystring: z.object(idType),
        response: { 200: z.object({ customer }), ...badRequest, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const person = await findPerson(
        database,
        request,
        request.params.identifier,
        request.query.id_type,
      );
      if (!person)
        return sendNobody(request, reply, request.params.identifier, request.query.id_type);
      const devices = await listDevices(database, environmentOf(request), person.personId);
      return reply.send({ customer: toCustomer(person, devices) });
    },
  );

  app.get(
    '/v1/customers/:identifier/activities',
    {
      schema: {
        tags,
        summary: "A person's activities of the last 30 days",
        description:
          'Newest first: events, pages, screens, and what changed about the person. What came more than 30 days ago is left out, whatever its time.',
        params,
        querystring: z.object({
          ...idType,
          type: text(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: '`event`, `page`, `attribute_change`, …' }),
          name: text(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: 'The name of the event, page or screen.' }),
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({ activities: z.array(activity), next: nextToken }),
          ...badRequest,
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, type, name, start, limit } = request.query;
      const after = readStart(start, activityPosition);
      const person = await findPerson(database, request, request.params.identifier, id_type);
      if (!person) return sendNobody(request, reply, request.params.identifier, id_type);
      const rows = await listActivities(database, {
        environmentId: environmentOf(request),
        personId: person.personId,
        notBeforeMs: now() - SHOWN_FOR_MS,
        kind: type,
        name,
        after,
        limit: limit + 1,
      });
      const { page, next } = splitPage(rows, limit, (row) => [row.occurredAtMicros, row.eventId]);
      return reply.send({ activities: page.map((row) => toActivity(row, person)), next });
    },
  );

  app.get(
    '/v1/customers/:identifier/relationships',
    {
      schema: {
        tags,
        summary: 'The objects that a person is related to',
        description:
          'In the order in which the objects were made. `cio_relationships` is the same list again.',
        params,
        querystring: z.object({ ...idType, ...pageQuery(LIMIT_MAX, LIMIT_MAX) }),
        response: {
          200: z.object({
            svc_relationships: z.array(relationship),
            cio_relationships: z.array(relationship),
            next: nextToken,
          }),
          ...badRequest,
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, start, limit } = request.query;
      const after = readStart(start, relationshipPosition);
      const person = await findPerson(database, request, request.params.identifier, id_type);
      if (!person) return sendNobody(request, reply, request.params.identifier, id_type);
      const rows = await listRelationships(database, {
        environmentId: environmentOf(request),
        personId: person.personId,
        after,
        limit: limit + 1,
      });
      const { page, next } = splitPage(rows, limit, (row) => [row.objectNumber]);
      const relationships = page.map(toRelationship);
      return reply.send({
        svc_relationships: relationships,
        cio_relationships: relationships,
        next,
      });
    },
  );
}

type IdType = (typeof ID_TYPES)[number];

async function findPerson(
  database: Database,
  request: FastifyRequest,
  identifier: string,
  type: IdType,
): Promise<PersonProfile | undefined> {
  const environmentId = environmentOf(request);
  switch (type) {
    case 'id':
      return findPersonProfile(database, { environmentId, kind: 'id', value: identifier });
    case 'email':
      return findPersonProfile(database, {
        environmentId,
        kind: 'email',
        value: storedValue('email', identifier),
      });
    case 'svc_id':
    case 'cio_id': {
      const personId = personIdOf(identifier.replace(/^(?:svc|cio)_/, ''));
      if (personId === undefined) return undefined;
      return findPersonProfile(database, {
        environmentId,
        kind: 'person_id',
        value: String(personId),
      });
    }
  }
}

/**
 * 404 that says which kind of identifier was looked up, so that a forgotten `id_type` does not look like a lost
 * person.
 */
function sendNobody(
  request: FastifyRequest,
  reply: FastifyReply,
  identifier: string,
  type: IdType,
): FastifyReply {
  const problem: Problem = {
    code: 'not_found',
    message: `customer not found: nobody has this ${type}${hint(identifier, type)}`,
  };
  return sendProblem(request, reply, problem);
}

function hint(identifier: string, type: IdType): string {
  if (type !== 'id') return '';
  if (identifier.includes('@')) return '; to look up an email, send id_type=email';
  return /^(?:svc|cio)_/.test(identifier) ? '; to look up a svc_id, send id_type=svc_id' : '';
}
