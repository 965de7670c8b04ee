/**
 * Spans by OpenTelemetry's SDK, sent in batches to a collector. Only `open-tracer.ts` loads this file,
 * and only if traces are on. The only global registration is the logger of the SDK's warnings.
 *
 * A collector that is away costs spans, never calls: the SDK keeps 2,048 and drops the rest.
 */
import {
  diag,
  DiagLogLevel,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span as SdkSpan,
  type SpanContext,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import type { Logger } from '../process/logger.ts';
import type { Span, Tracer, TracingSettings } from './tracing.ts';

export interface TracerOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly sampler: TracingSettings['OTEL_TRACES_SAMPLER'];
  /** 0 to 1. */
  readonly ratio: number;
  readonly logger: Pick<Logger, 'warn'>;
}

const KINDS = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};
const CLOSE_DEADLINE_MS = 5_000;
/** So that the spans of a quiet process can be seen after a second. */
const SEND_INTERVAL_MS = 1_000;

export function startTracer(options: TracerOptions): Tracer {
  const warn = (message: string) => options.logger.warn({ message }, 'traces');
  const quiet = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    DiagLogLevel.WARN,
  );
  const exporter = new OTLPTraceExporter({
    url: options.url,
    headers: { ...options.headers },
    timeoutMillis: CLOSE_DEADLINE_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.serviceName }),
    sampler: samplerOf(options),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: SEND_INTERVAL_MS })],
  });
  const tracer = provider.getTracer('sluice');
  return {
    startSpan({ name, kind, parent, links = [], attributes }) {
      const contexts = links.map(readTraceparent).filter((context) => context !== undefined);
      const started = tracer.startSpan(
        name,
        {
          kind: KINDS[kind],
          attributes: { ...attributes },
          links: contexts.map((context) => ({ context })),
        },
        parentContext(parent),
      );
      return wrap(started);
    },
    close: () => provider.shutdown().catch((error: unknown) => warn(String(error))),
  };
}

function wrap(span: SdkSpan): Span {
  const context = span.spanContext();
  const isSampled = (context.traceFlags & TraceFlags.SAMPLED) !== 0;
  return {
    traceparent: isSampled ? `00-${context.traceId}-${context.spanId}-01` : undefined,
    link(traceparent) {
      const other = readTraceparent(traceparent);
      if (other) span.addLink({ context: other });
    },
    note: (name, attributes) => void span.addEvent(name, { ...attributes }),
    end(attributes, failure) {
      span.setAttributes({ ...attributes });
      if (failure !== undefined) {
        span.setAttribute('error.type', failure);
        span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      }
      span.end();
    },
  };
}

function samplerOf({ sampler, ratio }: TracerOptions): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

function parentContext(traceparent: string): Context {
  const parent = readTraceparent(traceparent);
  return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
}

/** By W3C Trace Context, §3.2, later versions may have more after the flags; `ff` is not a version. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

function readTraceparent(text: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(text) ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}
