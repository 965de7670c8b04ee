/**
 * Traces of a worker's work, if they are on (`platform/src/telemetry/tracing.ts`).
 *
 * A traced commit batch has a span, and so has each attempt to deliver its events. Its place in the trace is kept with
 * the commit batch's claim, so that any worker that sends the deliveries, at any time, continues it.
 * ```
 *   send events ─▶ process events ─▶ (in Postgres) POST {endpoint}, POST {endpoint}, …
 *   POST …/replays ─────────────────▶ (in Postgres) POST {endpoint}, each linked to process events
 * ```
 * The endpoint gets its place by a `traceparent` header, beside the signed text (`ingestion-webhooks.md` §5 signs
 * timestamp and body), unless the webhook has one of its own. Deliveries of a replay continue the call that asked for
 * it. Tests of a webhook are not traced.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import { listTraceparents } from '@sluice/database/events/commit-batches';
import type { ClaimedReplay } from '@sluice/database/replays/replay-lanes';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Logger } from '@sluice/platform/process/logger';
import { clientRequest, commitBatchStep } from '@sluice/platform/telemetry/span-conventions';
import type { Span, Tracer } from '@sluice/platform/telemetry/tracing';
import { outcomeOf } from '../http/http-outcome.ts';
import type { PostDelivery } from '../lane/lane-drain-deps.ts';
import type { LaneStore } from '../lane/lane-store.ts';
import type { DrainedLog, ReplayedLog } from '../delivery/replay-deliveries.ts';
import type { ProcessOne } from '../events/commit-batch-processor.ts';
import type { LaneHandOver, ProcessOutcome } from '../events/process-commit-batch.ts';
import type { TraceImport } from '../imports/run-import.ts';
import { createImportTracing } from './trace-imports.ts';

/** Wraps its argument in traces; returns the argument itself if traces are off. */
export interface WorkerTracing {
  processing(process: ProcessOne): ProcessOne;
  loading(store: LaneStore): LaneStore;
  waking(wake: LaneHandOver['wake']): LaneHandOver['wake'];
  replaying(store: ReplayedLog, replay: ClaimedReplay): DrainedLog;
  posting(post: PostDelivery): PostDelivery;
  readonly importing: TraceImport | undefined;
}

/** Place of a delivery in the trace. */
interface Place {
  readonly traceparent: string;
  readonly links: readonly string[];
  readonly lane: LaneKey;
  readonly sequence: number;
  readonly replayId?: number;
}

const OFF: WorkerTracing = {
  processing: (process) => process,
  loading: (store) => store,
  waking: (wake) => wake,
  replaying: (store) => store,
  posting: (post) => post,
  importing: undefined,
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
  const places = new WeakMap<LoggedDelivery, Place>();

  /** Remembers for each delivery of a page the place that `choose` makes of its commit batch's place. */
  const remember = async (
    lane: LaneKey,
    page: readonly LoggedDelivery[],
    sequenceOf: (position: number) => number,
    choose: (found: string | undefined) => Omit<Place, 'lane' | 'sequence'> | undefined,
  ): Promise<void> => {
    const [first] = page;
    if (!first) return;
    const sequences = page.map(({ sequence }) => sequenceOf(sequence));
    const found = await listTraceparents(database, lane, sequences, first.readFromDay).catch(
      (error: unknown) => {
        logger.warn({ error }, 'deliveries could not be traced; they are sent without a trace');
        return undefined;
      },
    );
    if (!found) return;
    for (const [index, delivery] of page.entries()) {
      const sequence = sequences[index] ?? delivery.sequence;
      const place = choose(found.get(sequence));
      if (place) places.set(delivery, { ...place, lane, sequence });
    }
  };

  const startSpanOf = (commitBatch: CommitBatch): Span | undefined =>
    commitBatch.traceparent === undefined
      ? undefined
      : tracer.startSpan({
          ...commitBatchStep('process', commitBatch),
          parent: commitBatch.traceparent,
        });

  return {
    processing: (process) => async (commitBatch, behind) => {
      const commitBatches = [commitBatch, ...behind];
      const spans = commitBatches.map(startSpanOf);
      if (!spans.some((span) => span)) return process(commitBatch, behind);
      const [first = commitBatch, ...rest] = commitBatches.map((each, place) => {
        const traceparent = spans[place]?.traceparent;
        return traceparent === undefined ? each : { ...each, traceparent };
      });
      try {
        const result = await process(first, rest);
        for (const [place, span] of spans.entries()) if (span) endSpan(span, result, place);
        return result;
      } catch (error) {
        // Its text may hold parts of a row.
        for (const span of spans) span?.end({}, error instanceof Error ? error.name : 'failed');
        throw error;
      }
    },

    loading: (store) => ({
      ...store,
      async load(request) {
        const page = await store.load(request);
        await remember(request.lane, page, itself, placeOf);
        return page;
      },
    }),

    waking: (wake) => async (lanes, askedAtMs) => {
      const handed = lanes.map(({ environmentId, webhookId, deliveries = [] }) =>
        remember({ environmentId, webhookId }, deliveries, itself, placeOf),
      );
      await Promise.all(handed);
      await wake(lanes, askedAtMs);
    },

    replaying(store, { traceparent, ...replay }) {
      if (traceparent === null) return store;
      return {
        keep: (report) => store.keep(report),
        async load(request) {
          const page = await store.load(request);
          const sequenceOf = (position: number): number => store.sequenceOf(position);
          await remember(replay, page, sequenceOf, (original) => ({
            traceparent,
            links: original === undefined ? [] : [original],
            replayId: replay.replayId,
          }));
          return page;
        },
      };
    },

    importing: createImportTracing(tracer),

    posting: (post) => async (request, delivery) => {
      const place = places.get(delivery);
      if (!place) return post(request, delivery);
      const { attributes, ...sent } = clientRequest('POST', '{endpoint}');
      const span = tracer.startSpan({
        ...sent,
        parent: place.traceparent,
        links: place.links,
        attributes: {
          ...attributes,
          'sluice.environment_id': place.lane.environmentId,
          'sluice.webhook_id': place.lane.webhookId,
          ...(place.replayId !== undefined && { 'sluice.replay_id': place.replayId }),
          'sluice.sequence': place.sequence,
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

const itself = (sequence: number): number => sequence;

const placeOf = (
  traceparent: string | undefined,
): Pick<Place, 'traceparent' | 'links'> | undefined =>
  traceparent === undefined ? undefined : { traceparent, links: [] };

/** @param place - index of the commit batch among the ones to apply together; counts are the counts of all of them. */
function endSpan(span: Span, result: ProcessOutcome, place: number): void {
  if (result.outcome !== 'applied') {
    span.end({ 'sluice.outcome': result.outcome });
    return;
  }
  if (place >= result.envelopes) {
    span.end({ 'sluice.outcome': 'left-for-later' });
    return;
  }
  const { events, reports, issues, parked: deadLettered } = result.counts;
  span.note('reports logged', {
    'sluice.reports': reports,
    'sluice.lanes': result.lanes.length,
  });
  span.end({
    'sluice.outcome': result.outcome,
    'sluice.events': events,
    'sluice.issues': issues,
    'sluice.parked': deadLettered,
  });
}
