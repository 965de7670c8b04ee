/** `GET /v1/customers/{id}/attributes/{name}/history`: an attribute's values, with times and calls. */
import type { Database } from '@sluice/database/connection/connection';
import { listActivities } from '@sluice/database/people/activity-reads';
import { ATTRIBUTE_NAME_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { isJsonObject } from '@sluice/domain/values/json';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { badRequest, commonFailures, missing, text } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import {
  activityPosition,
  activityPositionOf,
  idType,
  personParams,
  requirePerson,
  SHOWN_FOR_MS,
} from './customers.ts';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 20;

const attributeChange = z.object({
  at: z.string().meta({ format: 'date-time' }),
  from: z.unknown().meta({ description: 'Null: the person did not have it.' }),
  to: z.unknown(),
  activity_id: z.string(),
});

/** Of the last 30 days, as activities are kept. */
export function registerAttributeHistory(
  app: ApiServer,
  { database, now }: { readonly database: Database; readonly now: () => number },
): void {
  app.get(
    '/v1/customers/:identifier/attributes/:name/history',
    {
      schema: {
        tags: ['customers'],
        summary: 'The history of an attribute',
        description: 'Its changes of the last 30 days, newest first.',
        params: personParams.extend({ name: text(ATTRIBUTE_NAME_SIZE_BYTES_MAX).min(1) }),
        querystring: z.object({ ...idType, ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT) }),
        response: {
          200: z.object({ history: z.array(attributeChange), next: nextToken }),
          ...badRequest,
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { id_type, start, limit } = request.query;
      const { identifier, name } = request.params;
      const after = readStart(start, activityPosition);
      const person = await requirePerson(database, request, identifier, id_type);
      const rows = await listActivities(database, {
        environmentId: environmentOf(request),
        personId: person.personId,
        notBeforeMs: now() - SHOWN_FOR_MS,
        kind: 'attribute_change',
        name: undefined,
        attribute: name,
        after,
        limit: limit + 1,
      });
      const { page, next } = splitPage(rows, limit, activityPositionOf);
      const history = page.map((row) => {
        const change = row.data[name];
        const { from = null, to = null } = isJsonObject(change) ? change : {};
        const at = new Date(Number(BigInt(row.occurredAtMicros) / 1_000n)).toISOString();
        return { at, from, to, activity_id: row.eventId };
      });
      return reply.send({ history, next });
    },
  );
}
