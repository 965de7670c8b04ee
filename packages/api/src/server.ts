/**
 * The HTTP edge of the API: one Fastify app from its effects, without opening a socket.
 *
 * Every request passes, in order: a request id, the headers every answer carries, 404 or 405 before the body is read,
 * the bearer key (under `/v1`), the body under its limit, the zod schemas, the handler, the response checked against
 * its schema. `routes.ts` registers the route families. Two kinds of keys: one of the app API opens a workspace
 * (`authenticate.ts`), a service account's token opens an account (`account-guard.ts`). A user's session in the console
 * opens both.
 */
import { portTaken } from '@sluice/platform/process/port-taken';
import fastify, { LogController } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { refuseWhatIsBeyond } from './auth/account-guard.ts';
import { watchMethods } from './serving/allowed-methods.ts';
import { registerConsoleFiles } from './console/console-files.ts';
import { refuseDemo } from './auth/demo-guard.ts';
import { createAddressCheck } from './auth/ip-allowlist.ts';
import { boundAddressConnections } from './serving/address-connections.ts';
import { ANSWERED_BODIES, AnsweredBodies } from './serving/answered-bodies.ts';
import { boundBodyTime } from './serving/body-deadline.ts';
import type { ApiEffects, RequestRecord } from './api-effects.ts';
import { registerRoutes } from './routes.ts';
import { parseJsonBody } from './http/body.ts';
import { handleClientError, handleError, sendProblem } from './http/error-handling.ts';
import type { ApiServer } from './http/api-server.ts';
import { withoutPorts } from './serving/forwarded-for.ts';
import { keepAnswers } from './http/idempotency.ts';
import { BODY_SIZE_BYTES_MAX } from './http/fields.ts';
import { readFromReplica } from './http/replica-reads.ts';
import { describeApi, serveReference } from './openapi/openapi.ts';
import { boundPipelines, leaveCutRequests } from './serving/pipelined-requests.ts';
import { registerProbes } from './serving/probes.ts';
import { endSilentConnections } from './serving/silent-connections.ts';
import { boundUnreadAnswers, UNREAD_ANSWERS } from './serving/unread-answers.ts';
import { validatorCompiler } from './http/request-validation.ts';

/** An email of 254 bytes, each percent-encoded. */
const PATH_PARAMETER_LENGTH_MAX = 1000;
const BODY_TIMEOUT_MS = 30_000;
const HEAD_TIMEOUT_MS = 30_000;
/** Of a file. */
const REQUEST_TIMEOUT_MS = 6 * 3_600_000;
/** Of a client that neither sends nor takes a byte. */
const SILENCE_TIMEOUT_MS = 120_000;

/** A request's id that a caller may choose: no spaces, and no character that breaks a log line. */
const REQUEST_ID = /^[\w.:+/=-]{1,128}$/;

/** Builds the app; `listen` and `close` are the caller's. */
export async function buildServer(
  effects: ApiEffects,
  bodyTimeoutMs = BODY_TIMEOUT_MS,
  silenceTimeoutMs = SILENCE_TIMEOUT_MS,
  unreadAnswers = UNREAD_ANSWERS,
  answeredBodies = ANSWERED_BODIES,
): Promise<ApiServer> {
  const app: ApiServer = fastify({
    loggerInstance: effects.logger,
    // Each request is logged once, below: Fastify's own lines show the URL, which names people.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_SIZE_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: silenceTimeoutMs,
    trustProxy: effects.trustedProxies.length === 0 ? false : [...effects.trustedProxies],
    // Node would answer a call without Host itself, without the headers of every answer.
    http: { headersTimeout: HEAD_TIMEOUT_MS, requireHostHeader: false },
    routerOptions: { maxParamLength: PATH_PARAMETER_LENGTH_MAX },
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : effects.newId();
    },
    // While closing, calls on open connections are still answered, with `Connection: close`.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => {
      void reply.headers(commonHeaders(request.id));
      handleError(error, request, reply);
    },
    clientErrorHandler: handleClientError(effects.newId),
  }).withTypeProvider<ZodTypeProvider>();

  boundAddressConnections(app.server, {
    countMax: effects.addressConnectionCountMax,
    isProxy: createAddressCheck(effects.trustedProxies),
  });
  endSilentConnections(app.server, effects.newId);
  boundPipelines(app.server);
  // A server may ignore an unknown expectation; the 417 of Node lacks the headers of every answer.
  app.server.on('checkExpectation', (...call) => void app.server.emit('request', ...call));
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(handleError);
  app.decorateRequest('caller', null);
  app.decorateRequest('accountCaller', null);
  app.decorateRequest('problemCode', null);
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.statusCode === 403) effects.refusedCredentials.noteAnswer(request);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody(app));

  app.decorateRequest('traceparent', null);
  app.addHook('onRequest', leaveCutRequests);
  effects.requestTracer?.watch(app);
  effects.serverStop?.watch(app);
  if (effects.trustedProxies.length > 0) {
    // Before the first use of the caller's address.
    app.addHook('onRequest', (request, _reply, done) => {
      const { headers } = request.raw;
      const forwardedFor = headers['x-forwarded-for'];
      if (typeof forwardedFor === 'string') headers['x-forwarded-for'] = withoutPorts(forwardedFor);
      done();
    });
  }
  app.addHook(
    'onRequest',
    boundBodyTime(bodyTimeoutMs, effects.newId, new AnsweredBodies(answeredBodies)),
  );
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(commonHeaders(request.id));
    if (request.is404)
      return sendProblem(request, reply, { code: 'not_found', message: 'no such path' });
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return sendProblem(request, reply, {
        code: 'invalid_request',
        message: 'Host is missing; send it once',
      });
    if (countHeaders(request.raw.rawHeaders, 'host') > 1)
      return sendProblem(request, reply, {
        code: 'invalid_request',
        message: 'Host is repeated; send it once',
      });
    const demoRefusal = refuseDemo(request.headers, effects.demoHosts);
    if (demoRefusal) return sendProblem(request, reply, demoRefusal);
    if (countHeaders(request.raw.rawHeaders, 'authorization') > 1)
      return sendProblem(request, reply, {
        code: 'invalid_request',
        message: 'Authorization is repeated; send it once',
      });
    return undefined;
  });
  app.addHook('onResponse', async (request, reply) => {
    const record: RequestRecord = {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
    };
    effects.recordRequest(record);
    request.log.debug(record, 'answered');
  });

  boundUnreadAnswers(app, unreadAnswers);
  refuseWhatIsBeyond(app);
  keepAnswers(app, effects);
  readFromReplica(app, effects.replicaReads);

  const declareMissingMethods = watchMethods(app);
  await describeApi(app);
  registerProbes(app, effects);
  await registerRoutes(app, effects);
  registerConsoleFiles(app, effects);
  serveReference(app);
  declareMissingMethods();
  return app;
}

/**
 * Opens the socket.
 *
 * @returns the port, which the system chose if `port` is 0.
 * @throws AppError PORT_TAKEN
 */
export async function listen(app: ApiServer, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const isOfSystem = error instanceof Error && 'syscall' in error;
    throw isOfSystem ? portTaken({ owner: 'API', host, port }, error) : error;
  }
  const address = app.server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Node reads the first of several; a proxy may have checked another. `headers` are names and values in turn. */
const countHeaders = (headers: readonly string[], name: string): number =>
  headers.filter((text, place) => place % 2 === 0 && text.toLowerCase() === name).length;

function commonHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
}
