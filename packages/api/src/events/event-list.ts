/** `GET /v1/events/{id}` and `GET /v1/events`: events with their bodies, as they were applied. */
import type { Database } from '@sluice/database/connection/connection';
import { findEvent, listEvents, type StoredEvent } from '@sluice/database/events/event-list';
import { findPersonProfile } from '@sluice/database/people/customer-reads';
import { EVENT_ID_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { svcId } from '@sluice/domain/values/svc-id';
import { storedEventId } from '@sluice/domain/values/ulid';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  NOT_BLANK,
  badRequest,
  commonFailures,
  identifierText,
  instant,
  missing,
  text,
  unixSecondsInQuery,
} from '../http/fields.ts';
import { nextToken, pageQuery, readStart, writePageToken } from '../http/page.ts';
import { readsOf } from '../http/replica-reads.ts';
import { notFound } from '../http/problem.ts';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
/** Events examined for one page of a filter: about 50 ms. */
const SCAN_COUNT_MAX = 10_000;
const NAME_LENGTH_MAX = 1_000;
/** As activities are shown. */
const SHOWN_FOR_MS = 30 * 86_400_000;

const event = z
  .object({
    event_id: z.string(),
    type: z.string(),
    name: z.string().nullable(),
    svc_id: z.string().nullable().meta({ description: 'Null: it belongs to no person yet.' }),
    anonymous_id: z.string().nullable(),
    occurred_at: instant,
    received_at: instant,
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Event' });

const position = z
  .tuple([z.string().regex(/^\d{1,18}$/), text(EVENT_ID_SIZE_BYTES_MAX)])
  .transform(([receivedAtMicros, eventId]) => ({ receivedAtMicros, eventId }));

const tags = ['events'];

export function registerEventList(
  app: ApiServer,
  { database, now }: { readonly database: Database; readonly now: () => number },
): void {
  app.get(
    '/v1/events/:event_id',
    {
      schema: {
        tags,
        summary: 'An event with its data',
        params: z.object({ event_id: identifierText(EVENT_ID_SIZE_BYTES_MAX) }),
        response: { 200: z.object({ event }), ...badRequest, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const eventId = storedEventId(request.params.event_id);
      const found = await findEvent(database, environmentOf(request), eventId);
      return found
        ? reply.send({ event: toWire(found) })
        : sendProblem(request, reply, notFound('the event was'));
    },
  );

  app.get(
    '/v1/events',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'The latest events',
        description: `Newest first, of the last 30 days. A page examines at most ${SCAN_COUNT_MAX.toLocaleString('en')} events, so one with a filter may be short, or empty with a \`next\`.`,
        querystring: z.strictObject({
          name: identifierText(NAME_LENGTH_MAX).min(1).meta(NOT_BLANK).optional(),
          person: identifierText(ID_SIZE_BYTES_MAX)
            .min(1)
            .meta(NOT_BLANK)
            .optional()
            .meta({ description: 'The `id` of a person.' }),
          since: unixSecondsInQuery.optional(),
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({ events: z.array(event), next: nextToken }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { name, person, since, start, limit } = request.query;
      const before = readStart(start, position);
      const reads = readsOf(request, database);
      const about =
        person === undefined
          ? undefined
          : await findPersonProfile(reads, { environmentId, kind: 'id', value: person });
      if (person !== undefined && !about) return reply.send({ events: [], next: '' });
      const sinceMs = Math.max(now() - SHOWN_FOR_MS, (since ?? 0) * 1_000);
      const { events, next } = await listEvents(
        reads,
        environmentId,
        { name, personId: about?.personId, sinceMs },
        before,
        { limit, scanLimit: SCAN_COUNT_MAX },
      );
      return reply.send({
        events: events.map(toWire),
        next: next ? writePageToken([next.receivedAtMicros, next.eventId]) : '',
      });
    },
  );
}

const toWire = (row: StoredEvent): z.infer<typeof event> => ({
  event_id: row.eventId,
  type: row.kind,
  name: row.name,
  svc_id: row.personId === null ? null : svcId(Number(row.personId)),
  anonymous_id: row.anonymousId,
  occurred_at: row.occurredAt.toISOString(),
  received_at: row.receivedAt.toISOString(),
  data: row.data,
});
