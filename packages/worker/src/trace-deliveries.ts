/**
 * Traces of what a worker does, where they are on (`platform/src/tracing.ts`): a span for each envelope
 * that is traced, one for each attempt to deliver what it brought about. Its place in the trace is
 * kept with the envelope's claim, so that whoever sends the deliveries, and however late, goes on with it.
 *
 * ```
 *   commit envelope ─▶ process envelope ─▶ (in Postgres) deliver webhook, deliver webhook, …
 * ```
 *
 * The endpoint is told its place by a `traceparent` header, beside what is signed
 * (`ingestion-webhooks.md` §5 signs timestamp and body), unless the webhook has one of its own.
 * Replays and tests are not traced.
 */
import type { Database } from '@sluice/database/connection';
import type { LoggedDelivery } from '@sluice/database/deliveries';
import { listTraceparents } from '@sluice/database/envelopes';
import type { LaneKey } from '@sluice/database/lanes';
import type { Envelope } from '@sluice/domain/operation';
import type { Logger } from '@sluice/platform/logger';
import type { Span, Tracer } from '@sluice/platform/tracing';
import { outcomeOf } from './http-outcome.ts';
import type { PostDelivery } from './lane-drain-deps.ts';
import type { LaneStore } from './lane-store.ts';
import type { ProcessOutcome } from './process-envelope.ts';

type ProcessOne = (envelope: Envelope, behind: readonly Envelope[]) => Promise<ProcessOutcome>;

/** Wraps what is to be traced; gives it back as it is where traces are off. */
export interface WorkerTracing {
  processing(process: ProcessOne): ProcessOne;
  loading(store: LaneStore): LaneStore;
  posting(post: PostDelivery): PostDelivery;
}

const OFF: WorkerTracing = {
  processing: (process) => process,
  loading: (store) => store,
  posting: (post) => post,
};

export interface WorkerTracingDeps {
  readonly tracer: Tracer | undefined;
  readonly database: Database;
  readonly logger: Pick<Logger, 'warn'>;
}

export function createWorkerTracing({
  tracer,
  database,
  logger,
}: WorkerTracingDeps): WorkerTracing {
  if (!tracer) return OFF;
  const places = new WeakMap<LoggedDelivery, { traceparent: string; lane: LaneKey }>();

  const remember = async (lane: LaneKey, page: readonly LoggedDelivery[]): Promise<void> => {
    const [first] = page;
    if (!first) return;
    const sequences = page.map(({ sequence }) => sequence);
    const found = await listTraceparents(database, lane, sequences, first.readFromDay);
    for (const delivery of page) {
      const traceparent = found.get(delivery.sequence);
      if (traceparent !== undefined) places.set(delivery, { traceparent, lane });
    }
  };

  const startSpanOf = ({ id, operations, traceparent }: Envelope): Span | undefined =>
    traceparent === undefined
      ? undefined
      : tracer.startSpan({
          name: 'process envelope',
          kind: 'consumer',
          parent: traceparent,
          attributes: { 'sluice.envelope_id': id, 'sluice.operations': operations.length },
        });

  return {
    processing: (process) => async (envelope, behind) => {
      const envelopes = [envelope, ...behind];
      const spans = envelopes.map(startSpanOf);
      if (!spans.some((span) => span)) return process(envelope, behind);
      const [first = envelope, ...rest] = envelopes.map((each, place) => {
        const traceparent = spans[place]?.traceparent;
        return traceparent === undefined ? each : { ...each, traceparent };
      });
      try {
        const result = await process(first, rest);
        for (const [place, span] of spans.entries()) if (span) endSpan(span, result, place);
        return result;
      } catch (error) {
        // Its text may have parts of a row.
        for (const span of spans) span?.end({}, error instanceof Error ? error.name : 'failed');
        throw error;
      }
    },

    loading: (store) => ({
      ...store,
      async load(request) {
        const page = await store.load(request);
        await remember(request.lane, page).catch((error: unknown) =>
          logger.warn({ error }, 'what is delivered now is not traced'),
        );
        return page;
      },
    }),

    posting: (post) => async (request, delivery) => {
      const place = places.get(delivery);
      if (!place) return post(request, delivery);
      const span = tracer.startSpan({
        name: 'deliver webhook',
        kind: 'client',
        parent: place.traceparent,
        attributes: {
          'sluice.environment_id': place.lane.environmentId,
          'sluice.webhook_id': place.lane.webhookId,
          'sluice.sequence': delivery.sequence,
          'sluice.event_id': delivery.eventId,
          'sluice.event_type': delivery.eventType,
        },
      });
      const { traceparent } = span;
      const headers =
        traceparent === undefined ? request.headers : { traceparent, ...request.headers };
      const answer = await post({ ...request, headers }, delivery);
      const outcome = outcomeOf(answer);
      span.end(
        {
          'sluice.outcome': outcome,
          ...(answer.status !== null && { 'http.response.status_code': answer.status }),
        },
        outcome === 'delivered' ? undefined : outcome,
      );
      return answer;
    },
  };
}

/** @param place - of the envelope among those that were to be applied together; counts are those of all that were. */
function endSpan(span: Span, result: ProcessOutcome, place: number): void {
  if (result.outcome !== 'applied') {
    span.end({ 'sluice.outcome': result.outcome });
    return;
  }
  if (place >= result.envelopes) {
    span.end({ 'sluice.outcome': 'left-for-later' });
    return;
  }
  const { events, reports, issues, parked } = result.counts;
  span.note('reports logged', {
    'sluice.reports': reports,
    'sluice.lanes': result.lanes.length,
  });
  span.end({
    'sluice.outcome': result.outcome,
    'sluice.events': events,
    'sluice.issues': issues,
    'sluice.parked': parked,
  });
}
