/**
 * People as the app API shows them (ingestion-conventions.md §5.3): found by email, and one
 * person's attributes, activities and relationships.
 *
 * `svc` names are ours; each has its `cio` alias beside it, because real clients read that one.
 */
import type { Database } from '@sluice/database/connection/connection';
import { type ActivityRow, listActivities } from '@sluice/database/people/activity-reads';
import {
  type PersonProfile,
  findPersonProfile,
  listDevices,
  listRelationships,
} from '@sluice/database/people/customer-reads';
import { EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { storedValue } from '@sluice/domain/operations/state-keys';
import { isAbsent, trimmed } from '@sluice/domain/value-rules/verdict';
import { VALUE_RULES } from '@sluice/domain/value-rules/value-rules';
import { personIdOf } from '@sluice/domain/values/svc-id';
import type { FastifyRequest } from 'fastify';
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
import { badRequest, commonFailures, identifierText, missing, text } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { sendProblem } from '../http/error-handling.ts';
import { invalidRequest, type Problem } from '../http/problem.ts';
import { readsOf } from '../http/replica-reads.ts';
import { RequestRefused } from '../http/request-validation.ts';
import { searchPeople, toFoundPerson } from './people-search.ts';
import { numberPosition, relationshipPage, toRelationshipPage } from './relationship-page.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface CustomerEffects {
  readonly database: Database;
  readonly now: () => number;
}

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 10;
/** Events older than 30 days are not shown in activity logs (ingestion-webhooks.md §8). */
export const SHOWN_FOR_MS = 30 * 24 * 3600 * 1000;
const FILTER_LENGTH_MAX = 2_000;

const ID_TYPES = ['id', 'email', 'svc_id', 'cio_id'] as const;

export const personParams = z.object({
  identifier: text(Math.max(EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX)),
});
export const idType = {
  id_type: z.enum(ID_TYPES).default('id').meta({
    description:
      'The kind of the identifier in the path. A svc_id may be written with or without `svc_` or `cio_` before it.',
  }),
};

const micros = z.string().regex(/^\d{1,18}$/);
/** Behind every received event, for tokens of an older version, which lack this position. */
const LATEST_MICROS = '9'.repeat(18);
export const activityPosition = z
  .union([
    z.tuple([micros, micros, text(FILTER_LENGTH_MAX)]),
    z
      .tuple([micros, text(FILTER_LENGTH_MAX)])
      .transform(([occurred, eventId]): [string, string, string] => [
        occurred,
        LATEST_MICROS,
        eventId,
      ]),
  ])
  .transform(([occurredAtMicros, receivedAtMicros, eventId]) => ({
    occurredAtMicros,
    receivedAtMicros,
    eventId,
  }));

export const activityPositionOf = (row: ActivityRow): readonly string[] => [
  row.occurredAtMicros,
  row.receivedAtMicros,
  row.eventId,
];

const tags = ['customers'];
const failures = { ...badRequest, ...missing, ...commonFailures };

export function registerCustomers(app: ApiServer, { database, now }: CustomerEffects): void {
  app.get(
    '/v1/customers',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'Find people by email',
        description:
          'Needs one of `email` and `query`. Letter case does not count. The list is empty if there is no such person.',
        querystring: z.object({
          email: text(FILTER_LENGTH_MAX).min(1).optional(),
          query: identifierText(EMAIL_SIZE_BYTES_MAX).optional().meta({
            description: 'How an id or email begins. Empty: the latest.',
          }),
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({
            results: z.array(customerIdentifiers),
            next: nextToken.optional(),
          }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { email, query, start, limit } = request.query;
      const reads = readsOf(request, database);
      if (email === undefined && query === undefined)
        return sendProblem(request, reply, refusedQuery('email', 'required', 'email is required'));
      if (email !== undefined && query !== undefined)
        return sendProblem(
          request,
          reply,
          refusedQuery('query', 'invalid', 'query must stand without email'),
        );
      if (query !== undefined) {
        const { people, next } = await searchPeople(reads, environmentId, {
          query,
          start,
          limit,
        });
        return reply.send({ results: people.map(toFoundPerson), next });
      }
      const person = await findByIdentifier(reads, environmentId, 'email', email ?? '');
      return reply.send({ results: person ? [toIdentifiers(person)] : [] });
    },
  );

  app.get(
    '/v1/customers/:identifier/attributes',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: "A person's attributes and devices",
        params: personParams,
        querystring: z.object(idType),
        response: { 200: z.object({ customer }), ...failures },
      },
    },
    async (request, reply) => {
      const { identifier } = request.params;
      const reads = readsOf(request, database);
      const person = await requirePerson(reads, request, identifier, request.query.id_type);
      const devices = await listDevices(reads, environmentOf(request), person.personId);
      return reply.send({ customer: toCustomer(person, devices) });
    },
  );

  app.get(
    '/v1/customers/:identifier/activities',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: "A person's activities of the last 30 days",
        description:
          'Newest first, also within one instant: events, pages, screens and changes of the person. Activities that arrived more than 30 days ago are left out, even if their time is later.',
        params: personParams,
        querystring: z.object({
          ...idType,
          type: text(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: '`event`, `page`, `attribute_change`, …' }),
          name: identifierText(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: 'The name of the event, page or screen.' }),
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({ activities: z.array(activity), next: nextToken }),
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, type, name, start, limit } = request.query;
      const after = readStart(start, activityPosition);
      const reads = readsOf(request, database);
      const person = await requirePerson(reads, request, request.params.identifier, id_type);
      const rows = await listActivities(reads, {
        environmentId: environmentOf(request),
        personId: person.personId,
        notBeforeMs: now() - SHOWN_FOR_MS,
        kind: isAbsent(type) ? undefined : type,
        name: isAbsent(name) ? undefined : name,
        after,
        limit: limit + 1,
      });
      const { page, next } = splitPage(rows, limit, activityPositionOf);
      return reply.send({ activities: page.map((row) => toActivity(row, person)), next });
    },
  );

  app.get(
    '/v1/customers/:identifier/relationships',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'The objects that a person is related to',
        description:
          'In the order in which the objects were made. `cio_relationships` is the same list again.',
        params: personParams,
        querystring: z.object({ ...idType, ...pageQuery(LIMIT_MAX, LIMIT_MAX) }),
        response: {
          200: relationshipPage(relationship),
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, start, limit } = request.query;
      const after = readStart(start, numberPosition);
      const reads = readsOf(request, database);
      const person = await requirePerson(reads, request, request.params.identifier, id_type);
      const rows = await listRelationships(reads, {
        environmentId: environmentOf(request),
        personId: person.personId,
        after,
        limit: limit + 1,
      });
      return reply.send(
        toRelationshipPage(rows, limit, ({ objectNumber }) => objectNumber, toRelationship),
      );
    },
  );
}

const refusedQuery = (field: string, reason: 'required' | 'invalid', message: string): Problem =>
  invalidRequest([{ field, reason, message, source: { parameter: field } }]);

type IdType = (typeof ID_TYPES)[number];

/** @throws RequestRefused 404 */
export async function requirePerson(
  database: Database,
  request: FastifyRequest,
  identifier: string,
  type: IdType,
): Promise<PersonProfile> {
  const person = await findPerson(database, environmentOf(request), identifier, type);
  if (!person) throw new RequestRefused(nobody(identifier, type));
  return person;
}

async function findPerson(
  database: Database,
  environmentId: number,
  identifier: string,
  type: IdType,
): Promise<PersonProfile | undefined> {
  switch (type) {
    case 'id':
    case 'email':
      return findByIdentifier(database, environmentId, type, identifier);
    case 'svc_id':
    case 'cio_id': {
      const personId = personIdOf(trimmed(identifier).replace(/^(?:svc|cio)_/, ''));
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
 * As an identifier is read at all doors, without blanks at its ends. People who were stored with some keep them, and
 * are found if no other person has the identifier without blanks.
 */
async function findByIdentifier(
  database: Database,
  environmentId: number,
  kind: 'id' | 'email',
  identifier: string,
): Promise<PersonProfile | undefined> {
  const verdict = VALUE_RULES.identifier(identifier, FILTER_LENGTH_MAX);
  const find = (value: string) =>
    findPersonProfile(database, { environmentId, kind, value: storedValue(kind, value) });
  if (verdict.outcome !== 'read') return find(identifier);
  return (
    (await find(verdict.value)) ?? (verdict.change === undefined ? undefined : find(identifier))
  );
}

/**
 * 404 that names the kind of identifier that was looked up, so that a forgotten `id_type` does not look like a lost
 * person.
 */
const nobody = (identifier: string, type: IdType): Problem => ({
  code: 'not_found',
  message: `customer not found: no person has this ${type}${hint(identifier, type)}`,
});

function hint(identifier: string, type: IdType): string {
  if (type !== 'id') return '';
  if (identifier.includes('@')) return '. To look up an email, send id_type=email';
  return /^(?:svc|cio)_/.test(identifier) ? '. To look up a svc_id, send id_type=svc_id' : '';
}
