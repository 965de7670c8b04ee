/**
 * `GET /v1/events/{event_id}/trace`: one event's whole way, from the call that brought it to the last
 * attempt to report it.
 *
 * It reads Postgres alone. An event that still waits in a queue, or in the disk buffer of an intake, is 404, like one
 * that was never sent or is another workspace's.
 */
import type { Database } from '@sluice/database/connection/connection';
import { ATTEMPTS_SHOWN_MAX } from '@sluice/database/delivery/delivery-reads';
import {
  type TracedAttempt,
  type TracedDelivery,
  type TracedCommitBatch,
  type TracedEvent,
  findEventArrival,
  findEventAt,
  listAttemptsOf,
  listDeliveriesOfEvent,
} from '@sluice/database/events/event-traces';
import { EVENT_ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { svcId } from '@sluice/domain/values/svc-id';
import { storedEventId, ulidTimeMs } from '@sluice/domain/values/ulid';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, commonFailures, identifierText, missing } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

/** Deliveries shown at most: an event may have one for each webhook and each resend. */
const DELIVERY_COUNT_MAX = 200;

const ms = z.int().meta({ description: 'Unix milliseconds.' });

const trace = z
  .object({
    event_id: z.string(),
    caused_by_event_id: z.string().nullable().meta({
      description:
        'Of a reporting event: the id of the event or metric that was sent, if it had one.',
    }),
    received: z
      .object({
        at_ms: ms,
        source: z.string().nullable().meta({
          description: 'The call, such as `pipelines.track` or `track.v2.batch`. Null: not kept.',
        }),
      })
      .nullable()
      .meta({ description: 'Null: not kept. A reporting event is not received, its cause is.' }),
    envelope: z
      .object({
        id: z.string(),
        made_at_ms: ms.nullable(),
        operations: z.int().meta({ description: 'How many came with it.' }),
        processed_at_ms: ms,
      })
      .nullable()
      .meta({ description: 'The batch in which it was queued. Null: not kept.' }),
    event: z
      .object({
        kind: z.string(),
        name: z.string().nullable(),
        svc_id: z.string().nullable().meta({ description: 'Null: it belongs to no person yet.' }),
        anonymous_id: z.string().nullable(),
        occurred_at_ms: ms,
        processed_at_ms: ms.nullable().meta({ description: 'Null while it belongs to no person.' }),
      })
      .nullable()
      .meta({ description: 'In a person’s history. Null: a metric has no place there.' }),
    deliveries: z
      .array(
        z.object({
          webhook_id: z.int(),
          sequence: z.int(),
          event_id: z.string().meta({ description: 'Of the reporting event.' }),
          event_type: z.string(),
          state: z.enum(['pending', 'retrying', 'delivered', 'abandoned']),
          origin: z.enum(['event', 'resend', 'test']),
          resend_of: z.int().nullable(),
          logged_at_ms: ms,
          attempts: z
            .array(
              z.object({
                attempt: z.int(),
                started_at_ms: ms,
                duration_ms: z.int(),
                outcome: z.enum(['delivered', 'retrying', 'abandoned']),
                status: z.int().nullable(),
                failure: z.string().nullable(),
                failure_message: z.string().nullable(),
              }),
            )
            .meta({ description: `The latest ${ATTEMPTS_SHOWN_MAX}, oldest first.` }),
        }),
      )
      .meta({
        description: `In the order in which they were logged; the latest ${DELIVERY_COUNT_MAX}.`,
      }),
  })
  .meta({ id: 'EventTrace', description: 'The way of one event, as far as it is known.' });

export function registerEventTrace(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.get(
    '/v1/events/:event_id/trace',
    {
      config: { mayLag: true },
      schema: {
        tags: ['events'],
        summary: 'The whole way of one event',
        description:
          'By the id that its sender gave it, or by the `event_id` of a reporting webhook. An event is found ' +
          'after it is processed. Other parts of a call than events and metrics have no id.',
        params: z.object({ event_id: identifierText(EVENT_ID_SIZE_BYTES_MAX) }),
        response: {
          200: z.object({ trace }),
          ...badRequest,
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const reads = readsOf(request, database);
      const environmentId = environmentOf(request);
      const eventId = storedEventId(request.params.event_id);
      const [own, deliveries] = await Promise.all([
        findEventArrival(reads, environmentId, eventId),
        listDeliveriesOfEvent(reads, environmentId, eventId, DELIVERY_COUNT_MAX),
      ]);
      if (!own && deliveries.length === 0)
        return sendProblem(request, reply, notFound('the event was'));

      const causeId = own ? null : (causeOf(deliveries)?.causeEventId ?? null);
      const arrival =
        own ??
        (causeId === null ? undefined : await findEventArrival(reads, environmentId, causeId));
      const receivedAt = arrival?.receivedAt;
      const [event, attempts] = await Promise.all([
        receivedAt && findEventAt(reads, environmentId, causeId ?? eventId, receivedAt),
        listAttemptsOf(reads, environmentId, deliveries),
      ]);
      const attemptsOf = Map.groupBy(attempts, laneText);
      return reply.send({
        trace: {
          event_id: eventId,
          caused_by_event_id: causeId,
          received: receivedAt ? { at_ms: receivedAt.getTime(), source: arrival.source } : null,
          envelope: commitBatchToWire(arrival?.envelope ?? causeOf(deliveries)?.envelope ?? null),
          event: event ? eventToWire(event) : null,
          deliveries: deliveries.map((delivery) =>
            deliveryToWire(delivery, attemptsOf.get(laneText(delivery)) ?? []),
          ),
        },
      });
    },
  );
}

/** A resend does not name the event that it reports; the delivery that it repeats does. */
const causeOf = (deliveries: readonly TracedDelivery[]): TracedDelivery | undefined =>
  deliveries.find(({ origin }) => origin === 'event');

const laneText = (of: { readonly webhookId: number; readonly sequence: number }): string =>
  `${of.webhookId} ${of.sequence}`;

type Wire = z.infer<typeof trace>;

const commitBatchToWire = (commitBatch: TracedCommitBatch | null): Wire['envelope'] =>
  commitBatch && {
    id: commitBatch.envelopeId,
    made_at_ms: ulidTimeMs(commitBatch.envelopeId) ?? null,
    operations: commitBatch.operationCount,
    processed_at_ms: commitBatch.processedAt.getTime(),
  };

const eventToWire = (event: TracedEvent): Wire['event'] => ({
  kind: event.kind,
  name: event.name,
  svc_id: event.personId === null ? null : svcId(Number(event.personId)),
  anonymous_id: event.anonymousId,
  occurred_at_ms: event.occurredAt.getTime(),
  processed_at_ms: event.processedAt?.getTime() ?? null,
});

const deliveryToWire = (
  delivery: TracedDelivery,
  attempts: readonly TracedAttempt[],
): Wire['deliveries'][number] => ({
  webhook_id: delivery.webhookId,
  sequence: delivery.sequence,
  event_id: delivery.eventId,
  event_type: delivery.eventType,
  state: delivery.state,
  origin: delivery.origin,
  resend_of: delivery.resendOf,
  logged_at_ms: delivery.appendedAt.getTime(),
  attempts: attempts.map((attempt) => ({
    attempt: attempt.attempt,
    started_at_ms: attempt.startedAtMs,
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    failure: attempt.failure,
    failure_message: attempt.failureMessage,
  })),
});
