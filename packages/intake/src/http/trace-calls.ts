/**
 * Traces of calls, if they are on (`platform/src/telemetry/tracing.ts`): a span a call, from its head to its answer,
 * and a span a commit batch, from its making to its confirmation.
 * ```
 *   sender ─▶ POST /v1/track ─▶ send events ─▶ (in the commit batch) process events
 *             POST /v1/track ┄┄ link ┄┄┘
 * ```
 * A commit batch holds many calls and continues one trace, the one of its first traced call. The others and the commit
 * batch link to each other. A stream is one span from its head to its last line, and its commits continue that trace: a
 * sampler takes a stream whole or not at all. A call whose body never comes whole leaves no span. Without traces this
 * file is not reached: the server registers other handlers, and the batcher asks once a flush, a stream once a group.
 */
import type { BatchSteps } from '@sluice/domain/parsing/batch';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  endRequest,
  commitBatchStep,
  requestStart,
} from '@sluice/platform/telemetry/span-conventions';
import type { Span, SpanAttributes, Tracer } from '@sluice/platform/telemetry/tracing';
import type { CommitBatchDraft, TracedFlush } from '../commit/batcher.ts';
import { answerOf } from './answer.ts';
import { methodOf, STREAM_PATTERN, type Call, type Route } from '../calls/calls.ts';
import type { Accept } from './exchange.ts';

/** A stream that is traced. */
export interface StreamTrace {
  /** Puts the operations that are about to be committed into the stream's trace. */
  mark(operations: readonly Operation[]): void;
  /** Called once; with a failure if the sender did not hear the end. */
  end(status: number, attributes: SpanAttributes, failure?: string): void;
}

export class CallTracer {
  readonly #tracer: Tracer;
  /** Of the calls that are traced: until their operations are gone. */
  readonly #spans = new WeakMap<Operation, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /**
   * Traces one call and hands it to the use case.
   *
   * @param traceparent - as the sender gave it; empty if it is absent.
   * @param requestId - the proxy's or the sender's, to find the call by.
   */
  acceptCall(accept: Accept, route: Route, traceparent: string, requestId: string): Accept {
    const { call, pattern } = route;
    const request = { method: methodOf(route), route: pattern, traceparent, requestId };
    const span = this.#tracer.startSpan(requestStart(request));
    if (span.traceparent === undefined) return accept;
    return (submission, answer) =>
      accept({ ...submission, call: this.#marking(submission.call, span) }, (outcome, standing) => {
        const status = Number.parseInt(answerOf(call, outcome, standing).status, 10);
        endRequest(span, status, { 'sluice.call': call.name, 'sluice.outcome': outcome.outcome });
        answer(outcome, standing);
      });
  }

  /** Undefined if the stream is not traced. */
  acceptStream(traceparent: string, requestId: string): StreamTrace | undefined {
    const span = this.#tracer.startSpan(
      requestStart({ method: 'POST', route: STREAM_PATTERN, traceparent, requestId }),
    );
    if (span.traceparent === undefined) return undefined;
    return {
      mark: (operations) => {
        for (const operation of operations) this.#spans.set(operation, span);
      },
      end(status, attributes, failure) {
        if (failure === undefined) endRequest(span, status, attributes);
        else span.end(attributes, failure);
      },
    };
  }

  /** The traces that the commit batches of a flush belong to; undefined without any. */
  traceFlush(commitBatches: readonly CommitBatchDraft[]): TracedFlush | undefined {
    const started: Span[] = [];
    const traceparents = new Map<string, string>();
    for (const commitBatch of commitBatches) {
      const { shard, id, operations } = commitBatch;
      const [first, ...others] = this.#callsIn(operations);
      if (first?.traceparent === undefined) continue;
      const { attributes, ...step } = commitBatchStep('send', commitBatch);
      const span = this.#tracer.startSpan({
        ...step,
        parent: first.traceparent,
        links: others.flatMap(({ traceparent }) => traceparent ?? []),
        attributes: { ...attributes, 'messaging.destination.partition.id': String(shard) },
      });
      const { traceparent } = span;
      if (traceparent === undefined) continue;
      started.push(span);
      traceparents.set(id, traceparent);
      for (const other of others) other.link(traceparent);
    }
    if (started.length === 0) return undefined;
    return {
      traceparents,
      end(outcome) {
        const failure = outcome === 'committed' ? undefined : outcome;
        for (const span of started) span.end({ 'sluice.outcome': outcome }, failure);
      },
    };
  }

  #marking(call: Call, span: Span): Call {
    const { parseInSteps } = call;
    return {
      ...call,
      parse: (...input) => {
        const parsed = call.parse(...input);
        for (const operation of parsed.operations) this.#spans.set(operation, span);
        return parsed;
      },
      ...(parseInSteps && {
        parseInSteps: (...input) => this.#markingSteps(parseInSteps(...input), span),
      }),
    };
  }

  *#markingSteps(steps: BatchSteps, span: Span): BatchSteps {
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      for (const operation of step.value) this.#spans.set(operation, span);
      yield step.value;
    }
  }

  #callsIn(operations: readonly Operation[]): Set<Span> {
    return new Set(operations.flatMap((operation) => this.#spans.get(operation) ?? []));
  }
}
