/**
 * Objects as the app API shows them (ingestion-conventions.md §5.3): the types in use, the objects
 * that a filter matches, one object's attributes, and the people related to it.
 *
 * `svc` names are ours; each has its `cio` alias beside it, because real clients read that one.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type ObjectProfile,
  findObjectProfile,
  findObjects,
  listObjectRelationships,
  listObjectTypes,
} from '@sluice/database/people/object-reads';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { objectNumberOf } from '@sluice/domain/values/svc-id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  identifierText,
  idInPath,
  missing,
  text,
} from '../http/fields.ts';
import { objectFilter } from './object-filter.ts';
import {
  object,
  objectIdentifiers,
  objectRelationship,
  toObject,
  toObjectIdentifiers,
  toObjectRelationship,
} from './object-view.ts';
import { nextToken, pageQuery, readStart, splitPage, writePageToken } from '../http/page.ts';
import { invalidRequest, notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import { numberPosition, relationshipPage, toRelationshipPage } from './relationship-page.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

const LIMIT_MAX = 100;
const FOUND_LIMIT_MAX = 1_000;
const FOUND_LIMIT_DEFAULT = 100;
/** Objects that a page looks at, for any filter: tens of milliseconds at worst. */
const SCAN_LIMIT = 10_000;
const OBJECT_ID_LENGTH_MAX = ID_SIZE_BYTES_MAX;

const ID_TYPES = ['object_id', 'svc_object_id', 'cio_object_id'] as const;

const params = z.object({
  object_type_id: idInPath,
  object_id: identifierText(OBJECT_ID_LENGTH_MAX),
});
const idType = {
  id_type: z
    .enum(ID_TYPES)
    .default('object_id')
    .meta({ description: 'The kind of the object_id in the path.' }),
};

const typePosition = z.tuple([z.int().min(1).max(INTEGER_MAX)]).transform(([id]) => id);
const objectPosition = z.tuple([text(OBJECT_ID_LENGTH_MAX)]).transform(([objectId]) => objectId);

const tags = ['objects'];
const failures = { ...badRequest, ...missing, ...commonFailures };

export function registerObjects(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.get(
    '/v1/object_types',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'The types of object in use',
        description: 'A type is in use while there is an object of it.',
        querystring: z.object(pageQuery(LIMIT_MAX, LIMIT_MAX)),
        response: {
          200: z.object({
            types: z.array(
              z.object({
                id: z.string().meta({ description: 'As Track takes it: an integer as text.' }),
                object_type_id: z.int(),
              }),
            ),
            next: nextToken,
          }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { start, limit } = request.query;
      const ids = await listObjectTypes(readsOf(request, database), {
        environmentId: environmentOf(request),
        after: readStart(start, typePosition),
        limit: limit + 1,
      });
      const { page, next } = splitPage(ids, limit, (id) => [id]);
      return reply.send({
        types: page.map((id) => ({ id: String(id), object_type_id: id })),
        next,
      });
    },
  );

  app.post(
    '/v1/objects',
    {
      // A search, whose filter is a body.
      config: { capability: 'workspace.read', mayLag: true },
      schema: {
        tags,
        summary: 'Find objects of one type',
        description: `In the order of their ids. A page looks at ${SCAN_LIMIT} objects at most, so it may be short or empty while \`next\` is set.`,
        querystring: z.object(pageQuery(FOUND_LIMIT_MAX, FOUND_LIMIT_DEFAULT)),
        body: z
          .object({
            object_type_id: z
              .union([z.int(), z.string().regex(/^\d{1,10}$/)])
              .transform(Number)
              .refine((id) => id >= 1 && id <= INTEGER_MAX, { error: 'must be a positive int32' })
              .meta({
                ...{ type: 'integer', minimum: 1, maximum: INTEGER_MAX },
                description: 'A number, or one as text.',
              }),
            filter: objectFilter,
          })
          .meta({
            requestExamples: [
              {
                object_type_id: 1,
                filter: { object_attribute: { field: 'plan', operator: 'eq', value: 'premium' } },
              },
            ],
          }),
        response: {
          200: z.object({
            identifiers: z.array(objectIdentifiers),
            ids: z.array(z.string()).meta({ description: 'The object ids alone.' }),
            next: nextToken,
          }),
          ...badRequest,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { start, limit } = request.query;
      const { object_type_id: objectTypeId, filter: read } = request.body;
      const after = readStart(start, objectPosition);
      for (const typeId of read.typeIds) {
        if (typeId !== String(objectTypeId)) return sendOtherType(request, reply);
      }
      const { objects, nextAfter } = await findObjects(readsOf(request, database), {
        environmentId: environmentOf(request),
        objectTypeId,
        filter: read.filter,
        after,
        limit,
        scanLimit: SCAN_LIMIT,
      });
      return reply.send({
        identifiers: objects.map((row) => toObjectIdentifiers({ ...row, objectTypeId })),
        ids: objects.map((row) => row.objectId),
        next: nextAfter === undefined ? '' : writePageToken([nextAfter]),
      });
    },
  );

  app.get(
    '/v1/objects/:object_type_id/:object_id/attributes',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: "An object's attributes",
        params,
        querystring: z.object(idType),
        response: { 200: z.object({ object }), ...failures },
      },
    },
    async (request, reply) => {
      const found = await requireObject(
        readsOf(request, database),
        request,
        request.params,
        request.query.id_type,
      );
      return reply.send({ object: toObject(found) });
    },
  );

  app.get(
    '/v1/objects/:object_type_id/:object_id/relationships',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'The people that an object is related to',
        description:
          'In the order in which the people were first seen. `cio_relationships` is the same list again.',
        params,
        querystring: z.object({ ...idType, ...pageQuery(LIMIT_MAX, LIMIT_MAX) }),
        response: {
          200: relationshipPage(objectRelationship),
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, start, limit } = request.query;
      const after = readStart(start, numberPosition);
      const reads = readsOf(request, database);
      const found = await requireObject(reads, request, request.params, id_type);
      const rows = await listObjectRelationships(reads, {
        environmentId: environmentOf(request),
        objectNumber: found.objectNumber,
        after,
        limit: limit + 1,
      });
      return reply.send(
        toRelationshipPage(rows, limit, ({ personId }) => personId, toObjectRelationship),
      );
    },
  );
}

type IdType = (typeof ID_TYPES)[number];

/** @throws RequestRefused 404 */
async function requireObject(
  database: Database,
  request: FastifyRequest,
  named: z.infer<typeof params>,
  type: IdType,
): Promise<ObjectProfile> {
  const found = await findObject(database, environmentOf(request), named, type);
  if (!found) throw new RequestRefused(notFound('object'));
  return found;
}

async function findObject(
  database: Database,
  environmentId: number,
  { object_type_id: objectTypeId, object_id: objectId }: z.infer<typeof params>,
  type: IdType,
): Promise<ObjectProfile | undefined> {
  const name = { environmentId, objectTypeId };
  if (type === 'object_id')
    return findObjectProfile(database, { ...name, kind: 'object_id', value: objectId });
  const objectNumber = objectNumberOf(objectId.replace(/^(?:svc|cio)_/, ''));
  if (objectNumber === undefined) return undefined;
  const value = String(objectNumber);
  return findObjectProfile(database, { ...name, kind: 'object_number', value });
}

function sendOtherType(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(
    request,
    reply,
    invalidRequest([
      {
        field: 'filter',
        reason: 'invalid',
        message:
          'filter has a type_id that is not the object_type_id of the call; send the same one',
        source: { pointer: '/filter' },
      },
    ]),
  );
}
