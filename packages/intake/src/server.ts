/**
 * The sockets of intake (step 1): routes to exchanges, pages, the methods of each path. The only file that
 * imports uWebSockets.js. `req` is dead once a handler returns, so heads are read here, at once.
 *
 * After: `request-head.ts`, `exchange.ts`.
 */
import {
  App,
  us_listen_socket_close,
  us_socket_local_port,
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
} from 'uWebSockets.js';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { portTaken, requireFreePort } from '@sluice/platform/process/port-taken';
import { problem } from './http/answer.ts';
import { methodOf, STREAM_PATTERN, type Call, type Route } from './calls/calls.ts';
import { Exchange, type Accept } from './http/exchange.ts';
import { DISCARDED_SIZE_BYTES_MAX } from './body/oversized-body.ts';
import { endHead, writePage, writePermission, type PageOf } from './http/page.ts';
import { writeHead } from './http/write-head.ts';
import {
  allowedHeaders,
  framingProblem,
  NO_PARAMETERS,
  readCallHead,
  readHead,
  readParameters,
  type Head,
} from './http/request-head.ts';
import { openServerState, type ServerState } from './http/server-state.ts';
import type { CutConnections } from './connections/cut-connections.ts';
import { SILENCE_TICK_MS, SilentConnections } from './connections/silent-connections.ts';
import type { FastPath } from './calls/fast-path.ts';
import { StreamExchange, type StreamOptions } from './stream/stream-exchange.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Of open connections. Further ones are cut. */
  readonly connectionCountMax: number;
  readonly cuts: Pick<CutConnections, 'cut'>;
  /**
   * Called once the server listens. True if the kernel bounds each turn of the connections that come from then on
   * (`connections/receive-buffer.ts`).
   */
  readonly boundReceiveBuffers: (port: number) => Promise<boolean>;
  readonly routes: readonly Route[];
  readonly accept: Accept;
  /** Asked before `accept`, for calls that can take the fast path. */
  readonly fastPath?: FastPath;
  /** Makes the `accept` of one call, from its `traceparent` and `X-Request-Id`; absent without traces. */
  readonly acceptTraced?: (route: Route, traceparent: string, requestId: string) => Accept;
  /** Bytes of all bodies that have come in part; a call whose workspace gets no capacity is answered 503. */
  readonly collected: SharedCapacity;
  /** Bytes of large answers that are not read; a call whose workspace gets no capacity is answered without details. */
  readonly unread: SharedCapacity;
  readonly streams: StreamOptions;
  /** The workspace whose credentials an `Authorization` header has; 0 if they are unknown. */
  readonly ownerOf: (authorization: string) => number;
  /** `DEMO_HOSTS`. */
  readonly demoHosts: readonly string[];
  /** GET pages: health, metrics, the browser's settings, the tests of credentials. */
  readonly pages: Readonly<Record<string, PageOf>>;
}

export interface Server {
  readonly port: number;
  /** Takes no new connection, sends `Connection: close` on the others, and ends streams after their received lines. */
  stopListening(): void;
  /** Cuts the remaining connections. */
  close(): void;
  /** Calls that wait for their answer. */
  inFlightCount(): number;
  /** Calls that have come since the start. */
  receivedCount(): number;
  /** By status, since the start: calls that were not taken. Streams are not counted. */
  refusedCounts(): ReadonlyMap<string, number>;
}

/** @throws AppError PORT_TAKEN */
export function startServer(options: ServerOptions): Promise<Server> {
  const app = App();
  const state = openServerState({ ...options, turns: options.streams.turns });

  const silent = new SilentConnections(options.cuts);
  let ticking: NodeJS.Timeout | undefined;
  const tick = (): void => {
    if (silent.tick()) return;
    clearInterval(ticking);
    ticking = undefined;
  };
  let connectionCount = 0;
  app.filter((res, change) => {
    connectionCount += change;
    if (change <= 0) return;
    if (connectionCount > options.connectionCountMax) {
      options.cuts.cut(res, 'too_many_connections');
      return;
    }
    silent.opened(res);
    ticking ??= setInterval(tick, SILENCE_TICK_MS).unref();
  });
  hearEach(app, (res) => {
    silent.heard(res);
    state.requestTurns.heard();
  });

  // A large body counts as a waiting one.
  state.turns.yieldTo(() => state.receivedCount - state.heldCount);

  const receive = (
    res: HttpResponse,
    req: HttpRequest,
    call: Call,
    parameterCount: number,
    query: readonly string[],
    accept: Accept,
  ): void => {
    const head = readCallHead(req);
    if (isRefusedForFraming(res, head)) return;
    const parameters =
      parameterCount === 0 ? NO_PARAMETERS : readParameters(req, parameterCount, query);
    state.inFlightCount++;
    state.receivedCount++;
    new Exchange(res, head, call, parameters, state, accept, options.fastPath).receive();
  };

  for (const route of options.routes) {
    const { method, pattern, call, query = NO_PARAMETERS } = route;
    const parameterCount = pattern.split('/:').length - 1;
    const { accept, acceptTraced } = options;
    const take =
      acceptTraced === undefined
        ? (res: HttpResponse, req: HttpRequest) =>
            receive(res, req, call, parameterCount, query, accept)
        : (res: HttpResponse, req: HttpRequest) => {
            const traced = acceptTraced(
              route,
              req.getHeader('traceparent'),
              req.getHeader('x-request-id'),
            );
            receive(res, req, call, parameterCount, query, traced);
          };
    for (const path of closingSlashToo(pattern)) app[method](path, take);
  }
  const takeStream = (res: HttpResponse, req: HttpRequest): void => {
    const head = readHead(req);
    const query = { id: req.getQuery('id'), line: req.getQuery('line') };
    const { streams } = options;
    const trace = streams.trace?.(req.getHeader('traceparent'), req.getHeader('x-request-id'));
    new StreamExchange(res, head, query, state, streams, trace).receive(framingProblem(head));
  };
  for (const path of closingSlashToo(STREAM_PATTERN)) app.post(path, takeStream);
  servePages(app, options.pages, state);
  app.options('/*', (res, req) => {
    if (isRefusedForFraming(res, readHead(req), 'OPTIONS')) return;
    const headers = allowedHeaders(req.getHeader('access-control-request-headers'));
    let isAborted = false;
    res.onAborted(() => void (isAborted = true));
    state.requestTurns.run(() => {
      if (!isAborted) res.cork(() => writePermission(res, headers));
    });
  });
  for (const [pattern, methods] of methodsByPattern(options)) {
    app.any(pattern, (res, req) => {
      refuse(res, req, state, {
        status: '405 Method Not Allowed',
        allow: methods,
        body: problem(405, 'method_not_allowed', `use ${methods}`),
      });
    });
  }
  app.any('/*', (res, req) => {
    refuse(res, req, state, {
      status: '404 Not Found',
      body: problem(404, 'not_found', 'there is no such path'),
    });
  });

  return new Promise((resolve, reject) => {
    app.listen(options.host, options.port, (socket: us_listen_socket | false) => {
      if (!socket) {
        // uWebSockets.js does not give the reason.
        const wanted = { owner: 'INTAKE', host: options.host, port: options.port };
        requireFreePort(wanted).then(() => reject(portTaken(wanted)), reject);
        return;
      }
      const server: Server = {
        port: us_socket_local_port(socket),
        stopListening() {
          state.isStopping = true;
          us_listen_socket_close(socket);
          for (const stream of state.streams) stream.stop();
        },
        close() {
          clearInterval(ticking);
          app.close();
        },
        inFlightCount: () => state.inFlightCount,
        receivedCount: () => state.receivedCount,
        refusedCounts: () => state.refusedCounts,
      };
      options.boundReceiveBuffers(server.port).then((isBound) => {
        if (isBound) state.bodyReads.trustReceiveBuffers();
        resolve(server);
      }, reject);
    });
  });
}

/** Every handler that is added from now on reports its request first, without exception. */
function hearEach(app: TemplatedApp, hear: (res: HttpResponse) => void): void {
  for (const method of ['get', 'head', 'post', 'put', 'del', 'options', 'any'] as const) {
    const add = app[method].bind(app);
    app[method] = (pattern, handle) =>
      add(pattern, (res, req) => {
        hear(res);
        return handle(res, req);
      });
  }
}

/** The path, and the path with a slash at its end: clients join addresses both ways, and a 404 makes them drop a batch. */
const closingSlashToo = (pattern: string): readonly string[] =>
  pattern.endsWith('/') ? [pattern] : [pattern, `${pattern}/`];

/** GET and HEAD of every page. */
function servePages(app: TemplatedApp, pages: ServerOptions['pages'], state: ServerState): void {
  for (const [pattern, page] of Object.entries(pages)) {
    const parameterCount = pattern.split('/:').length - 1;
    const show = (res: HttpResponse, req: HttpRequest, hasBody: boolean): void => {
      const head = readHead(req);
      if (isRefusedForFraming(res, head, hasBody ? undefined : 'HEAD')) return;
      let isAborted = false;
      res.onAborted(() => void (isAborted = true));
      const parameters = readParameters(req, parameterCount, NO_PARAMETERS) ?? [];
      const shown = page(
        parameters,
        {
          host: head.host,
          authorization: head.authorization,
          mayUseDemo: state.demoGate.isOpenTo(head),
        },
        (name) => req.getQuery(name) ?? '',
      );
      void Promise.resolve(shown).then((answer) => {
        // As for a call that came in chunks (`exchange.ts`).
        const isLast = state.isStopping || head.transferEncodingCount > 0;
        state.requestTurns.run(() => {
          if (!isAborted) res.cork(() => writePage(res, answer, hasBody, isLast));
        });
      });
    };
    for (const path of closingSlashToo(pattern)) {
      app.get(path, (res, req) => show(res, req, true));
      app.head(path, (res, req) => show(res, req, false));
    }
  }
}

/** True if a request was answered 400 because the end of its body is uncertain. */
function isRefusedForFraming(res: HttpResponse, head: Head, method?: 'HEAD' | 'OPTIONS'): boolean {
  // The connection could not be ended after their answers: `endWithoutBody` does not do that.
  const framing =
    method !== undefined && head.transferEncodingCount > 0
      ? `${method} has no body`
      : framingProblem(head);
  if (framing === undefined) return false;
  const body = problem(400, 'invalid_framing', framing);
  res.cork(() => {
    writeHead(res, '400 Bad Request', true);
    // The connection must end, with any bytes behind the head.
    res.end(method === 'HEAD' ? '' : body, true);
  });
  return true;
}

/**
 * Answers once the body is at its end: a connection closed while bytes are on their way is reset by
 * the kernel, and the client never sees the answer. Of a body without end `DISCARDED_SIZE_BYTES_MAX` is read.
 */
function refuse(
  res: HttpResponse,
  req: HttpRequest,
  { bodyReads, cuts }: ServerState,
  { status, allow, body }: { status: string; allow?: string; body: string },
): void {
  const isHead = req.getMethod() === 'head';
  if (isRefusedForFraming(res, readHead(req), isHead ? 'HEAD' : undefined)) return;
  let sizeBytes = 0;
  let isOver = false;
  const read = bodyReads.open(res);
  res.onAborted(() => {
    isOver = true;
    read.close();
  });
  res.onData((chunk, isLast) => {
    if (!isOver && !isLast && read.isFlood(chunk.byteLength)) {
      cuts.cut(res, 'too_many_chunks');
      return;
    }
    sizeBytes += chunk.byteLength;
    if (isOver || !(isLast || sizeBytes > DISCARDED_SIZE_BYTES_MAX)) return;
    isOver = true;
    read.finish();
    res.cork(() => {
      writeHead(res, status, true);
      if (allow !== undefined) res.writeHeader('Allow', allow);
      if (isHead) endHead(res, Buffer.byteLength(body), true);
      else res.end(body, true);
    });
  });
}

function methodsByPattern({
  routes,
  pages,
}: Pick<ServerOptions, 'routes' | 'pages'>): Map<string, string> {
  const methods = new Map<string, string[]>();
  const add = (pattern: string, method: string) => {
    for (const path of closingSlashToo(pattern))
      methods.set(path, [...(methods.get(path) ?? []), method]);
  };
  add(STREAM_PATTERN, 'POST');
  for (const route of routes) add(route.pattern, methodOf(route));
  for (const pattern of Object.keys(pages)) add(pattern, 'GET, HEAD');
  return new Map([...methods].map(([pattern, list]) => [pattern, list.join(', ')]));
}
