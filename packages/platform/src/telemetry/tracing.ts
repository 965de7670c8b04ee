/**
 * Traces of single events on their way, by OpenTelemetry's protocol. Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` names a
 * collector; then, and only then, `open-tracer.ts` loads `open-telemetry.ts` and its libraries.
 *
 * A place in a trace is a W3C `traceparent` (`00-<32 hex>-<16 hex>-<flags>`): in a request's head, in a commit batch,
 * in Postgres. Only sampled events have one, so other events have no cost on the way.
 *
 * Attributes name ids of ours, counts and outcomes, without data of people, bodies and credentials.
 * `span-conventions.ts` has the names and attributes.
 */
import { z } from 'zod';

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'producer' | 'consumer' | 'client' | 'internal';
  /** A `traceparent`. If it is empty or malformed, a trace begins here. */
  readonly parent: string;
  /** Spans of other traces that this one works for. */
  readonly links?: readonly string[];
  readonly attributes: SpanAttributes;
}

export interface Span {
  /** For the next steps; undefined if the sampler leaves this one out. */
  readonly traceparent: string | undefined;
  /** Names a span of another trace that goes on with this one's work. */
  link(traceparent: string): void;
  /** Something that happened at this moment. */
  note(name: string, attributes: SpanAttributes): void;
  /** Once. With a failure, one word or a few, the span counts as failed. */
  end(attributes: SpanAttributes, failure?: string): void;
}

export interface Tracer {
  startSpan(start: SpanStart): Span;
  /** Sends the remaining spans, within a few seconds. */
  close(): Promise<void>;
}

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** Of intake, worker and API; OpenTelemetry's own names. */
export const tracingSettings = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'URL of a trace collector (OTLP over HTTP, JSON, at `/v1/traces`). Absent: no traces',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .default('')
    .transform((text, context) => {
      const headers = parseHeaders(text);
      if (headers) return headers;
      context.addIssue({
        code: 'custom',
        message: 'must be name=value pairs, percent-encoded, separated by commas',
      });
      return z.NEVER;
    })
    .describe('headers for the collector: `name=value`, percent-encoded, comma-separated'),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe('name of this process in traces. Absent: sluice-intake, sluice-worker or sluice-api'),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS)
    .default('parentbased_always_on')
    .describe(
      'selection of the traced calls; `parentbased_…` samplers follow the `traceparent` of the sender if there is one, the others ignore it',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('fraction of the calls that `…traceidratio` traces, from 0 to 1'),
});

export type TracingSettings = z.infer<typeof tracingSettings>;

/** The result of some work, and the ending of its span. */
interface SpanEnding<Result> {
  readonly result: Result;
  readonly attributes: SpanAttributes;
  readonly failure?: string | undefined;
}

/** Runs work as a span, which ends with it. An error is recorded by its name only: its text may hold parts of a row. */
export async function inSpan<Result>(
  tracer: Tracer,
  start: SpanStart,
  work: (span: Span) => Promise<SpanEnding<Result>>,
): Promise<Result> {
  const span = tracer.startSpan(start);
  try {
    const { result, attributes, failure } = await work(span);
    span.end(attributes, failure);
    return result;
  } catch (error) {
    span.end({}, error instanceof Error ? error.name : 'failed');
    throw error;
  }
}

/** Undefined if it is not `name=value,…`; an extra comma does no harm. */
function parseHeaders(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  try {
    return Object.fromEntries(
      pairs.map((pair) => {
        const [, name = '', value = ''] = /^\s*([^\s=]+)\s*=(.*)$/s.exec(pair) ?? [];
        if (name === '') throw new URIError(pair);
        return [name, decodeURIComponent(value.trim())];
      }),
    );
  } catch {
    return undefined;
  }
}
