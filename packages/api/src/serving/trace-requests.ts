/**
 * Traces of requests, if they are on (`platform/src/telemetry/tracing.ts`).
 *
 * A span a request, from its head to the end of its answer, under the sender's `traceparent` if it gives one. Later
 * work goes on with it: an import and a replay keep its place for the worker, and requests of the payment provider are
 * its children.
 *
 * If traces are off the hooks are not added, and `request.traceparent` is null.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { endRequest, requestStart } from '@sluice/platform/telemetry/span-conventions';
import type { Tracer } from '@sluice/platform/telemetry/tracing';
import type { ApiServer } from '../http/api-server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Its place in a trace, for later work of the call; null if it is not traced. */
    traceparent: string | null;
  }
}

/** Asked every few seconds by the platform that runs us; not worth a trace. */
const UNTRACED_ROUTES: readonly (string | undefined)[] = ['/livez', '/readyz', '/metrics'];

export class RequestTracer {
  readonly #tracer: Tracer;
  readonly #inProgress = new AsyncLocalStorage<string>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** The place in a trace of the request that this code runs for. */
  readonly findTraceparent = (): string | undefined => this.#inProgress.getStore();

  /** Before all other hooks, so that calls that they refuse are traced too. */
  watch(app: ApiServer): void {
    app.addHook('onRequest', (request, reply, done) => {
      const { method, headers, id, is404 } = request;
      const route = is404 ? undefined : request.routeOptions.url;
      if (UNTRACED_ROUTES.includes(route)) return done();
      const { traceparent: given } = headers;
      const traceparent = typeof given === 'string' ? given : '';
      const span = this.#tracer.startSpan(
        requestStart({ method, route, traceparent, requestId: id }),
      );
      // Also if the caller goes away, in which case Fastify runs no hook of the answer.
      reply.raw.once('close', () => {
        if (reply.raw.writableFinished) endRequest(span, reply.raw.statusCode);
        else span.end({}, 'cut');
      });
      if (span.traceparent === undefined) return done();
      request.traceparent = span.traceparent;
      return this.#inProgress.run(span.traceparent, done);
    });
    // A body is read by the socket's own callbacks, which do not know the request in progress.
    app.addHook('preValidation', ({ traceparent }, _reply, done) =>
      traceparent === null ? done() : this.#inProgress.run(traceparent, done),
    );
  }
}
