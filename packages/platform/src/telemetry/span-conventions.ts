/**
 * Names and attributes of spans by OpenTelemetry's semantic conventions: for HTTP (`{method} {route}`,
 * `http.…`) and for messaging (`{operation} {destination}`, `messaging.…`).
 *
 * Three required attributes are left out on purpose: `url.path` and `url.query`, which name people, and
 * `server.address` of a customer's endpoint, whose URL may be a secret. Our own attributes are under
 * `sluice.`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Span, SpanAttributes, SpanStart } from './tracing.ts';

/** The form that a proxy makes; senders may put anything there, people's addresses too. */
const REQUEST_ID = /^[\w-]{1,64}$/;

interface TracedRequest {
  /** `POST`, … */
  readonly method: string;
  /** The route's pattern, never the path; undefined if there is no such route. */
  readonly route: string | undefined;
  /** As the sender gave it; empty without one. */
  readonly traceparent: string;
  /** The proxy's or the sender's, to find the request by. */
  readonly requestId: string;
}

/** The start of a request that came to us. */
export function requestStart({ method, route, traceparent, requestId }: TracedRequest): SpanStart {
  return {
    name: route === undefined ? method : `${method} ${route}`,
    kind: 'server',
    parent: traceparent,
    attributes: {
      'http.request.method': method,
      ...(route !== undefined && { 'http.route': route }),
      ...(REQUEST_ID.test(requestId) && { 'sluice.request_id': requestId }),
    },
  };
}

/** The end of a request that was answered; from 500 on the fault is ours. */
export function endRequest(span: Span, status: number, attributes: SpanAttributes = {}): void {
  span.end(
    { 'http.response.status_code': status, ...attributes },
    status >= 500 ? String(status) : undefined,
  );
}

/** Name and attributes of a request of ours; `template` stands for all paths of its kind. */
export function clientRequest(
  method: string,
  template: string,
): Pick<SpanStart, 'name' | 'kind' | 'attributes'> {
  return {
    name: `${method} ${template}`,
    kind: 'client',
    attributes: { 'http.request.method': method, 'url.template': template },
  };
}

/** Name and attributes of a step of a commit batch. */
export function commitBatchStep(
  operation: 'send' | 'process',
  { id, operations }: Pick<CommitBatch, 'id' | 'operations'>,
): Pick<SpanStart, 'name' | 'kind' | 'attributes'> {
  return {
    name: `${operation} events`,
    kind: operation === 'send' ? 'producer' : 'consumer',
    attributes: {
      'messaging.system': 'bullmq',
      'messaging.operation.type': operation,
      'messaging.operation.name': operation,
      'messaging.destination.name': 'events',
      'messaging.message.id': id,
      'sluice.operations': operations.length,
    },
  };
}
