/** `GET /v1/reporting_webhooks/{id}/deliveries`: deliveries with their attempts, and blocked ones. */
import type { Database } from '@sluice/database/connection/connection';
import {
  ANSWERS_SHOWN_MAX,
  ATTEMPTS_SHOWN_MAX,
  type DeliveryFilter,
  type DeliveryReport,
  findDelivery,
  listAttempts,
  listDeliveries,
  listMatchingDeliveries,
  STATUS_CLASSES,
} from '@sluice/database/delivery/delivery-reads';
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import { findWebhook } from '@sluice/database/webhooks/webhooks';
import { findPersonProfile } from '@sluice/database/people/customer-reads';
import { EVENT_ID_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { storedEventId } from '@sluice/domain/values/ulid';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { z } from 'zod';
import { portalOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  NOT_BLANK,
  badRequest,
  identifierText,
  idInPath,
  sequenceInPath,
  text,
  unixSecondsInQuery,
} from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage, writePageToken } from '../http/page.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';
import { laneOf, noWebhook, readFailures, webhookParams, webhookTags } from './webhook-route.ts';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
const EVENT_TYPE_LENGTH_MAX = 100;
/** Deliveries examined for one page of a filter: about 50 ms. */
const SCAN_COUNT_MAX = 10_000;

/** As every list of attempts shows one. */
export const attempt = z
  .object({
    attempt: z.int().meta({ description: 'From 1.' }),
    started_at: z
      .int()
      .meta({ description: 'Unix seconds: the `x-svc-timestamp` of this attempt.' }),
    duration_ms: z.int(),
    outcome: z
      .enum(['delivered', 'retrying', 'abandoned'])
      .meta({ description: 'The state of the delivery after the attempt.' }),
    status: z.int().nullable().meta({ description: 'Null: no answer came.' }),
    failure: z
      .string()
      .nullable()
      .meta({ description: 'The class of the failure; null if it was delivered.' }),
    failure_message: z.string().nullable(),
    response_head: z.string().nullable().meta({
      description: 'Status line and headers. `••••` stands for a secret of the webhook.',
    }),
    response_body: z.string().nullable().meta({
      description: 'Its first 16 KB. `••••` stands for a secret of the webhook.',
    }),
  })
  .meta({ id: 'Attempt', description: 'One request of a delivery, and its answer.' });

const state = z.enum(['pending', 'retrying', 'delivered', 'abandoned']);

/** In a query; all that is given must hold. */
export const deliveryFilter = {
  state: state.optional(),
  event_type: text(EVENT_TYPE_LENGTH_MAX).min(1).optional(),
  since: unixSecondsInQuery
    .optional()
    .meta({ description: 'Logged at this time or later. Unix seconds.' }),
  until: unixSecondsInQuery
    .optional()
    .meta({ description: 'Logged before this time. Unix seconds.' }),
  person: identifierText(ID_SIZE_BYTES_MAX)
    .min(1)
    .meta(NOT_BLANK)
    .optional()
    .meta({ description: 'An id.' }),
  event_id: identifierText(EVENT_ID_SIZE_BYTES_MAX).min(1).meta(NOT_BLANK).optional(),
  status_class: z.enum(STATUS_CLASSES).optional().meta({ description: 'Of the last answer.' }),
};

const filterShape = z.object(deliveryFilter);

/** The number of no person. */
const NO_PERSON_ID = '0';

/**
 * @param isInPortal - an unknown person is searched for like a known one, so the answer does not show which persons of
 *   other customers the workspace has.
 * @returns undefined if there is no such person: then no delivery can be about them.
 */
export async function readDeliveryFilter(
  database: Database,
  environmentId: number,
  given: z.infer<typeof filterShape>,
  isInPortal = false,
): Promise<DeliveryFilter | undefined> {
  const { since, until, person, event_id: eventId } = given;
  const about =
    person === undefined
      ? undefined
      : await findPersonProfile(database, { environmentId, kind: 'id', value: person });
  if (person !== undefined && !about && !isInPortal) return undefined;
  return {
    state: given.state,
    eventType: given.event_type,
    sinceMs: since === undefined ? undefined : since * 1000,
    untilMs: until === undefined ? undefined : until * 1000,
    eventId: eventId === undefined ? undefined : storedEventId(eventId),
    personId: person === undefined ? undefined : (about?.personId ?? NO_PERSON_ID),
    statusClass: given.status_class,
  };
}

export const delivery = z
  .object({
    sequence: z.int().meta({ description: 'Its place among the deliveries of this webhook.' }),
    event_id: z.string(),
    event_type: z.string(),
    state: state.meta({
      description: '`pending`: not tried yet, or blocked behind a delivery that is retried.',
    }),
    occurred_at: z.int().meta({ description: 'Unix seconds: when the event happened.' }),
    created_at: z.int().meta({ description: 'Unix seconds: when the delivery was logged.' }),
    origin: z
      .enum(['event', 'resend', 'test'])
      .meta({ description: 'The cause: an event that happened, or one of your calls.' }),
    resend_of: z
      .int()
      .nullable()
      .meta({ description: 'The sequence of the delivery that this one repeats.' }),
    attempts: z.array(attempt).meta({
      description: `The latest ${ATTEMPTS_SHOWN_MAX}, oldest first. The latest ${ANSWERS_SHOWN_MAX} have the head and the body of the answer.`,
    }),
  })
  .meta({ id: 'Delivery', description: 'One event to one webhook.' });

const position = z.tuple([z.int().min(1)]).transform(([sequence]) => sequence);

export function registerWebhookDeliveries(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.get(
    '/v1/reporting_webhooks/:webhook_id/deliveries',
    {
      config: { isInPortal: true, mayLag: true },
      schema: {
        tags: webhookTags,
        summary: 'List the deliveries of a reporting webhook with their attempts',
        description:
          'Newest first. With a filter a page can be short, even empty, while `next` is set: ' +
          'each page looks at a bounded number of deliveries.',
        params: webhookParams,
        querystring: z.object({
          ...deliveryFilter,
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({ deliveries: z.array(delivery), next: nextToken }),
          ...badRequest,
          ...readFailures,
        },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const { start, limit, ...given } = request.query;
      const before = readStart(start, position);
      const reads = readsOf(request, database);
      if (!(await findWebhook(reads, lane.environmentId, lane.webhookId))) {
        return noWebhook(request, reply);
      }
      const wanted = await readDeliveryFilter(
        reads,
        lane.environmentId,
        given,
        portalOf(request) !== null,
      );
      if (!wanted) return reply.send({ deliveries: [], next: '' });
      const { page, next } = await readPage(reads, lane, wanted, before, limit);
      const attempts = await listAttempts(
        reads,
        lane,
        page.filter((row) => row.attempts > 0).map((row) => row.sequence),
      );
      const attemptsBySequence = Map.groupBy(attempts, (row) => row.sequence);
      return reply.send({
        deliveries: page.map((row) =>
          toWire(row, attemptsBySequence.get(row.sequence) ?? [], portalOf(request) !== null),
        ),
        next,
      });
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id/deliveries/:sequence',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Get a delivery',
        params: z.object({ webhook_id: idInPath, sequence: sequenceInPath }),
        response: { 200: z.object({ delivery }), ...readFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const { sequence } = request.params;
      if (!(await findWebhook(database, lane.environmentId, lane.webhookId)))
        return noWebhook(request, reply);
      const found = await findDelivery(database, lane, sequence);
      if (!found) return sendProblem(request, reply, notFound('the delivery was'));
      const attempts = await listAttempts(database, lane, [sequence]);
      return reply.send({ delivery: toWire(found, attempts, portalOf(request) !== null) });
    },
  );
}

async function readPage(
  database: Database,
  lane: LaneKey,
  wanted: DeliveryFilter,
  before: number | undefined,
  limit: number,
): Promise<{ page: readonly DeliveryReport[]; next: string }> {
  if (Object.values(wanted).every((each) => each === undefined)) {
    const rows = await listDeliveries(database, lane, limit + 1, before);
    return splitPage(rows, limit, (row) => [row.sequence]);
  }
  const { deliveries, nextBefore } = await listMatchingDeliveries(database, lane, wanted, {
    beforeSequence: before ?? Number.MAX_SAFE_INTEGER,
    limit,
    scanLimit: SCAN_COUNT_MAX,
  });
  return { page: deliveries, next: nextBefore === undefined ? '' : writePageToken([nextBefore]) };
}

export const toWire = (
  row: DeliveryReport,
  attempts: readonly AttemptRecord[],
  isInPortal: boolean,
): z.infer<typeof delivery> => ({
  sequence: row.sequence,
  event_id: row.eventId,
  event_type: row.eventType,
  state: row.state,
  occurred_at: Math.floor(row.occurredAt.getTime() / 1000),
  created_at: Math.floor(row.appendedAt.getTime() / 1000),
  origin: row.origin,
  resend_of: row.resendOf,
  attempts: attempts.map((each) => attemptToWire(each, isInPortal)),
});

/** @param isInPortal - the user who skipped a delivery, and the reason, are for the workspace alone. */
export function attemptToWire(row: AttemptRecord, isInPortal: boolean): z.infer<typeof attempt> {
  return {
    attempt: row.attempt,
    started_at: Math.floor(row.startedAtMs / 1000),
    duration_ms: row.durationMs,
    outcome: row.outcome,
    status: row.status,
    failure: row.failure,
    failure_message: isInPortal && row.failure === 'skipped' ? null : row.failureMessage,
    response_head: row.responseHead,
    response_body: row.responseBody,
  };
}
