/**
 * The sockets of intake: uWebSockets.js in, one `Submission` out; one `Outcome` in, bytes out
 * (steps 1 and 8). The only file that imports uWebSockets.js.
 *
 * Its rules, kept here and nowhere else: `req` is dead once the handler returns; a chunk is detached
 * once `onData` returns; `res` is not touched after an abort; writes are corked.
 *
 * What uWebSockets.js itself lets through is refused here: a repeated `Content-Length`, and any
 * transfer coding but `chunked` (it would read `xchunked` as chunked, and two readers of one
 * connection that disagree about where a body ends is how requests are smuggled).
 *
 * After: `accept.ts`.
 */
import {
  App,
  us_listen_socket_close,
  us_socket_local_port,
  type HttpRequest,
  type HttpResponse,
  type us_listen_socket,
} from 'uWebSockets.js';
import { AppError } from '@sluice/domain/errors';
import type { Outcome, Submission } from './accept.ts';
import { answerOf, problem, type Answer } from './answer.ts';
import { routes, type Call } from './calls.ts';
import { readBody, readCompressedBody, readContentEncoding, type Body } from './read-body.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly accept: (submission: Submission, answer: (outcome: Outcome) => void) => void;
  /** GET pages: health, metrics, the browser's settings and snippet. */
  readonly pages: Readonly<Record<string, (parameters: readonly string[], host: string) => Promise<Page> | Page>>;
}

export interface Page {
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
  /** Seconds that caches may keep it; absent: not at all. */
  readonly cacheSeconds?: number;
}

export interface Server {
  readonly port: number;
  /** Takes no new connection and says `Connection: close` on the others. */
  stopListening(): void;
  /** Cuts what is left. */
  close(): void;
  /** Calls that wait for their answer. */
  inFlightCount(): number;
}

/** A body past its limit is read to its end, so that the client hears the answer, but only so far. */
const DISCARDED_SIZE_BYTES_MAX = 16 * 1024 * 1024;

const CORS_METHODS = 'GET, POST, PUT, DELETE, OPTIONS';
const CORS_HEADERS = 'Authorization, Content-Type, Content-Encoding, X-Strict-Mode';

/** @throws AppError PORT_TAKEN */
export function startServer(options: ServerOptions): Promise<Server> {
  const app = App();
  let isStopping = false;
  let inFlightCount = 0;

  const receive = (res: HttpResponse, req: HttpRequest, call: Call, parameterCount: number): void => {
    let authorization = '';
    let encodingHeader = '';
    let strictHeader = '';
    let transferEncoding = '';
    let lengthCount = 0;
    req.forEach((name, value) => {
      switch (name) {
        case 'authorization':
          authorization = value;
          break;
        case 'content-encoding':
          encodingHeader = value;
          break;
        case 'x-strict-mode':
          strictHeader = value;
          break;
        case 'content-length':
          lengthCount++;
          break;
        case 'transfer-encoding':
          transferEncoding = value;
          break;
      }
    });
    const framing = framingProblem(lengthCount, transferEncoding);
    if (framing !== undefined) {
      res.cork(() => {
        writeHead(res, '400 Bad Request');
        res.end(problem(400, 'invalid_framing', framing), true);
      });
      return;
    }
    const parameters = parameterCount === 0 ? NO_PARAMETERS : readParameters(req, parameterCount);
    const encoding = readContentEncoding(encodingHeader);
    const isStrict = strictHeader === '1';
    let isAborted = false;
    inFlightCount++;
    res.onAborted(() => {
      isAborted = true;
      inFlightCount--;
    });

    const send = (answer: Answer, closes = false): void => {
      if (isAborted) return;
      inFlightCount--;
      res.cork(() => {
        writeHead(res, answer.status);
        if (answer.retryAfterSeconds !== undefined) res.writeHeader('Retry-After', String(answer.retryAfterSeconds));
        if (answer.authenticate) res.writeHeader('WWW-Authenticate', 'Basic realm="sluice"');
        res.end(answer.body, closes || isStopping);
      });
    };
    const submit = (body: Body, closes = false): void => {
      if (parameters === undefined) {
        send({
          status: '400 Bad Request',
          body: problem(400, 'invalid', 'the path is not valid percent-encoding'),
        });
        return;
      }
      options.accept({ call, authorization, isStrict, body, parameters }, (outcome) => {
        send(answerOf(call, outcome), closes);
      });
    };

    collectBody(res, call.sizeBytesMax, (collected) => {
      if (collected.outcome === 'too-large') submit(collected, collected.isCut);
      else if (encoding === 'identity') submit(readBody(collected.bytes));
      else if (encoding === 'unsupported') submit(unsupportedEncoding(encodingHeader));
      // Copied: the socket's buffer is gone before the thread pool has read it.
      else void readCompressedBody(collected.bytes.slice(), encoding, call.sizeBytesMax).then(submit);
    });
  };

  for (const { method, pattern, call } of routes) {
    const parameterCount = pattern.split('/:').length - 1;
    app[method](pattern, (res, req) => receive(res, req, call, parameterCount));
  }
  for (const [pattern, page] of Object.entries(options.pages)) {
    const parameterCount = pattern.split('/:').length - 1;
    app.get(pattern, (res, req) => {
      let isAborted = false;
      res.onAborted(() => void (isAborted = true));
      const parameters = readParameters(req, parameterCount) ?? [];
      void Promise.resolve(page(parameters, req.getHeader('host'))).then((answer) => {
        if (isAborted) return;
        res.cork(() => {
          res.writeStatus(answer.status);
          res.writeHeader('Content-Type', answer.contentType);
          res.writeHeader('Access-Control-Allow-Origin', '*');
          res.writeHeader(
            'Cache-Control',
            answer.cacheSeconds === undefined ? 'no-store' : `public, max-age=${answer.cacheSeconds}`,
          );
          res.end(answer.body, isStopping);
        });
      });
    });
  }
  app.options('/*', (res) => {
    res.cork(() => {
      res.writeStatus('204 No Content');
      res.writeHeader('Access-Control-Allow-Origin', '*');
      res.writeHeader('Access-Control-Allow-Methods', CORS_METHODS);
      res.writeHeader('Access-Control-Allow-Headers', CORS_HEADERS);
      res.writeHeader('Access-Control-Max-Age', '86400');
      res.endWithoutBody();
    });
  });
  for (const [pattern, methods] of methodsByPattern(options.pages)) {
    app.any(pattern, (res) => {
      refuseWithoutReading(res, '405 Method Not Allowed', methods, problem(405, 'method_not_allowed', `use ${methods}`));
    });
  }
  app.any('/*', (res) => {
    refuseWithoutReading(res, '404 Not Found', undefined, problem(404, 'not_found', 'there is no such path'));
  });

  return new Promise((resolve, reject) => {
    app.listen(options.host, options.port, (socket: us_listen_socket | false) => {
      if (!socket) {
        reject(new AppError('PORT_TAKEN', `${options.host}:${options.port} (INTAKE_PORT) is in use`));
        return;
      }
      resolve({
        port: us_socket_local_port(socket),
        stopListening() {
          isStopping = true;
          us_listen_socket_close(socket);
        },
        close: () => void app.close(),
        inFlightCount: () => inFlightCount,
      });
    });
  });
}

const NO_PARAMETERS: readonly string[] = [];

/** Undefined where a part is not valid percent-encoding. */
function readParameters(req: HttpRequest, count: number): readonly string[] | undefined {
  try {
    return Array.from({ length: count }, (_, index) => decodeURIComponent(req.getParameter(index) ?? ''));
  } catch {
    return undefined;
  }
}

function framingProblem(lengthCount: number, transferEncoding: string): string | undefined {
  if (lengthCount > 1) return 'Content-Length is repeated';
  if (transferEncoding !== '' && transferEncoding.trim().toLowerCase() !== 'chunked') {
    return 'a Transfer-Encoding other than chunked is not supported';
  }
  return undefined;
}

type Collected =
  | { readonly outcome: 'whole'; readonly bytes: Uint8Array }
  /** `isCut`: the rest was not read, so the connection cannot be used again. */
  | { readonly outcome: 'too-large'; readonly isCut: boolean };

/** Calls `done` once, unless the connection is aborted first. `bytes` are valid until `done` returns. */
function collectBody(res: HttpResponse, sizeBytesMax: number, done: (collected: Collected) => void): void {
  let chunks: Uint8Array[] | undefined;
  let sizeBytes = 0;
  let isDone = false;
  res.onData((chunk, isLast) => {
    if (isDone) return;
    sizeBytes += chunk.byteLength;
    if (isLast) {
      isDone = true;
      if (sizeBytes > sizeBytesMax) done({ outcome: 'too-large', isCut: false });
      else if (chunks === undefined) done({ outcome: 'whole', bytes: new Uint8Array(chunk) });
      else done({ outcome: 'whole', bytes: Buffer.concat([...chunks, new Uint8Array(chunk)], sizeBytes) });
    } else if (sizeBytes <= sizeBytesMax) {
      (chunks ??= []).push(new Uint8Array(chunk.slice(0)));
    } else {
      chunks = [];
      if (sizeBytes > DISCARDED_SIZE_BYTES_MAX) {
        isDone = true;
        done({ outcome: 'too-large', isCut: true });
      }
    }
  });
}

function writeHead(res: HttpResponse, status: string): void {
  res.writeStatus(status);
  res.writeHeader('Content-Type', 'application/json; charset=utf-8');
  res.writeHeader('Access-Control-Allow-Origin', '*');
}

/** The body, if any, is not read: the connection ends with the answer. */
function refuseWithoutReading(res: HttpResponse, status: string, allow: string | undefined, body: string): void {
  res.cork(() => {
    writeHead(res, status);
    if (allow !== undefined) res.writeHeader('Allow', allow);
    res.end(body, true);
  });
}

function unsupportedEncoding(header: string): Body {
  return {
    outcome: 'invalid-encoding',
    message: `the content encoding ${JSON.stringify(header.slice(0, 50))} is not supported; use gzip, deflate or none`,
  };
}

function methodsByPattern(pages: ServerOptions['pages']): Map<string, string> {
  const methods = new Map<string, string[]>();
  const add = (pattern: string, method: string) => methods.set(pattern, [...(methods.get(pattern) ?? []), method]);
  for (const { pattern, method } of routes) add(pattern, method === 'del' ? 'DELETE' : method.toUpperCase());
  for (const pattern of Object.keys(pages)) add(pattern, 'GET');
  return new Map([...methods].map(([pattern, list]) => [pattern, list.join(', ')]));
}
