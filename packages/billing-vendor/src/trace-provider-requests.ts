/**
 * Requests of the payment provider as client spans, for traces.
 *
 * If traces are on (`platform/src/telemetry/tracing.ts`), each HTTP request that a traced request of ours makes has
 * one. The payment provider itself receives no part of the trace.
 */
import { clientRequest } from '@sluice/platform/telemetry/span-conventions';
import { inSpan, type Tracer } from '@sluice/platform/telemetry/tracing';
import { Stripe } from 'stripe';

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;

/**
 * The SDK's own HTTP client, with spans. @param findParent - of the request in progress; undefined if it is in no
 * trace.
 */
export function createTracedHttpClient(
  tracer: Tracer,
  findParent: () => string | undefined,
): HttpClient {
  const client = Stripe.createNodeHttpClient();
  const send = client.makeRequest.bind(client);
  client.makeRequest = async (...request) => {
    const parent = findParent();
    if (parent === undefined) return send(...request);
    const [host, port, path, method] = request;
    const { attributes, ...named } = clientRequest(method, templateOf(path));
    const server = { 'server.address': host, 'server.port': Number(port) };
    const start = { ...named, parent, attributes: { ...attributes, ...server } };
    return inSpan(tracer, start, async () => {
      const result = await send(...request);
      const status = result.getStatusCode();
      const failure = status >= 400 ? String(status) : undefined;
      return { result, attributes: { 'http.response.status_code': status }, failure };
    });
  };
  return client;
}

/**
 * `/v1/customers/cus_N1x?expand=…` → `/v1/customers/{id}`: words of the payment provider's paths have no digit and no
 * capital.
 */
export const templateOf = (path: string): string =>
  path
    .replace(/[?#].*/s, '')
    .split('/')
    .map((part) => (/^(?:v\d|[a-z_]*)$/.test(part) ? part : '{id}'))
    .join('/');
