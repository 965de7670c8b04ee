/**
 * For tests: a collector of traces that really listens, and reads the spans that it gets (OTLP over HTTP, JSON).
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty if the trace begins. */
  readonly parentSpanId: string;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly string[];
  /** Ids of spans. */
  readonly links: readonly string[];
  readonly isFailed: boolean;
  /** Unix milliseconds, with a fraction. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

export interface CollectorUnderTest {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** Of each request. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** All that came, to look for names in. */
  text(): string;
  close(): void;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number | boolean>>;
}
interface SentSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes?: readonly Attribute[];
  readonly events?: readonly { readonly name: string }[];
  readonly links?: readonly { readonly spanId: string }[];
  readonly status?: { readonly code?: number };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

const STATUS_ERROR = 2;

export async function startCollectorUnderTest(): Promise<CollectorUnderTest> {
  const spans: CollectedSpan[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      headers.push({ ...request.headers, path: request.url });
      bodies.push(body);
      spans.push(...readSpans(JSON.parse(body) as Export));
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    headers,
    text: () => bodies.join('\n'),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function readSpans({ resourceSpans }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        service: String(readAttributes(resource.attributes)['service.name']),
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        attributes: readAttributes(span.attributes ?? []),
        events: (span.events ?? []).map(({ name }) => name),
        links: (span.links ?? []).map(({ spanId }) => spanId),
        isFailed: span.status?.code === STATUS_ERROR,
        startedAtMs: Number(span.startTimeUnixNano) / 1e6,
        endedAtMs: Number(span.endTimeUnixNano) / 1e6,
      })),
    ),
  );
}

const readAttributes = (attributes: readonly Attribute[]): CollectedSpan['attributes'] =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? '']));
