/**
 * Traces of calls, where they are on (`platform/src/tracing.ts`): a span a call, from its head to its
 * answer, and a span an envelope, from its making to its confirmation.
 *
 * ```
 *   sender ─▶ intake pipelines.track ─▶ commit envelope ─▶ (in the envelope) process envelope
 *             intake pipelines.track ┄┄┄┄┄┄ link ┄┄┘
 * ```
 *
 * An envelope holds many calls and goes on in one trace: that of the first of its calls that is
 * traced. The others and the envelope link to each other.
 *
 * Where traces are off none of this is reached: the server registers other handlers, and the batcher
 * asks once a flush.
 */
import type { Operation } from '@sluice/domain/operation';
import type { ShardEnvelope } from '@sluice/platform/queue';
import type { Span, Tracer } from '@sluice/platform/tracing';
import type { TracedFlush } from './batcher.ts';
import type { Call } from './calls.ts';
import type { Accept } from './exchange.ts';

/** What a proxy makes; senders may put anything there, people's addresses too. */
const REQUEST_ID = /^[\w-]{1,64}$/;

export class CallTracer {
  readonly #tracer: Tracer;
  /** Of the calls that are traced: until their operations are gone. */
  readonly #spans = new WeakMap<Operation, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /**
   * One call's way to the use case.
   *
   * @param traceparent - as the sender gave it; empty where it gave none.
   * @param requestId - the proxy's or the sender's, to find the call by.
   */
  acceptCall(accept: Accept, call: Call, traceparent: string, requestId: string): Accept {
    const span = this.#tracer.startSpan({
      name: `intake ${call.name}`,
      kind: 'server',
      parent: traceparent,
      attributes: {
        'sluice.call': call.name,
        ...(REQUEST_ID.test(requestId) && { 'sluice.request_id': requestId }),
      },
    });
    if (span.traceparent === undefined) return accept;
    return (submission, answer) =>
      accept({ ...submission, call: this.#marking(submission.call, span) }, (outcome, standing) => {
        span.end(
          { 'sluice.outcome': outcome.outcome },
          outcome.outcome === 'overloaded' ? outcome.outcome : undefined,
        );
        answer(outcome, standing);
      });
  }

  /** Marks what a flush writes with the traces that it belongs to; undefined where it has none. */
  traceFlush(envelopes: readonly ShardEnvelope[]): TracedFlush | undefined {
    const started: Span[] = [];
    const marked = envelopes.map((each): ShardEnvelope => {
      const { shard, envelope } = each;
      const [first, ...others] = this.#callsIn(envelope.operations);
      if (first?.traceparent === undefined) return each;
      const span = this.#tracer.startSpan({
        name: 'commit envelope',
        kind: 'producer',
        parent: first.traceparent,
        links: others.flatMap(({ traceparent }) => traceparent ?? []),
        attributes: {
          'sluice.envelope_id': envelope.id,
          'sluice.shard': shard,
          'sluice.operations': envelope.operations.length,
        },
      });
      const { traceparent } = span;
      if (traceparent === undefined) return each;
      started.push(span);
      for (const other of others) other.link(traceparent);
      return { shard, envelope: { ...envelope, traceparent } };
    });
    if (started.length === 0) return undefined;
    return {
      envelopes: marked,
      end(outcome) {
        const failure = outcome === 'committed' ? undefined : outcome;
        for (const span of started) span.end({ 'sluice.outcome': outcome }, failure);
      },
    };
  }

  #marking(call: Call, span: Span): Call {
    return {
      ...call,
      parse: (...input) => {
        const parsed = call.parse(...input);
        for (const operation of parsed.operations) this.#spans.set(operation, span);
        return parsed;
      },
    };
  }

  #callsIn(operations: readonly Operation[]): Set<Span> {
    return new Set(operations.flatMap((operation) => this.#spans.get(operation) ?? []));
  }
}
