/**
 * Sends one POST and tells how it ended; it never throws and never retries, but for one case.
 *
 * - One deadline an attempt, from before the name look-up to the last byte of the body.
 * - Only vetted addresses (`vetted-connection.ts`); redirects are answers like any other.
 * - HTTP/1.1, one request a connection at a time; connections are kept (`connection-pool.ts`).
 * - Of a body the first 16 KB are read, then the connection is cut; nothing is decompressed. So no
 *   answer, however long, takes more memory than that.
 * - A connection that was idle may be closed by the other side at the moment it is used again. When
 *   a **reused** connection breaks before any byte of an answer, the request is sent once more, on
 *   a fresh connection, within the same deadline: otherwise each such moment would cost a healthy
 *   endpoint an hour.
 *
 * Why a client a connection, and not undici's pool: the pool does not say whether a connection was
 * used before, nor does it let go of a connection that is still being opened.
 *
 * The only file that imports undici. Before: `deliver-webhook.ts` (step 11). After: the answer goes
 * back there.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isSuccessStatus, type FailureClass } from '@sluice/domain/delivery-failure';
import type { AddressRange } from '@sluice/domain/network-address';
import { toStorableText } from '@sluice/domain/storable-text';
import { Client, type Dispatcher } from 'undici';
import { classifyFailure, isConnectionLoss } from './classify-failure.ts';
import { ConnectionPool } from './connection-pool.ts';
import type { Proxy } from './proxy-tunnel.ts';
import {
  createVettedConnector,
  type OpenedSocket,
  type ResolveName,
  type VettedConnector,
} from './vetted-connection.ts';

export interface HttpPost {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HttpOutcome = {
  /** Null where no response head came. */
  readonly status: number | null;
  /** Status line and headers, as text; empty where none came. */
  readonly head: string;
  /** The first part of the body, as text. */
  readonly body: string;
  readonly durationMs: number;
} & (
  | { readonly outcome: 'response'; readonly status: number }
  | {
      readonly outcome: 'failure';
      readonly failure: Exclude<FailureClass, 'status'>;
      readonly message: string;
    }
);

/** For counting: `delivered`, `status` for an answer that is no success, or the class of the failure. */
export const outcomeOf = (answer: HttpOutcome): 'delivered' | FailureClass => {
  if (answer.outcome === 'failure') return answer.failure;
  return isSuccessStatus(answer.status) ? 'delivered' : 'status';
};

export interface HttpClientOptions {
  readonly timeoutMs: number;
  readonly allowPrivateAddresses: boolean;
  /** Networks that are open in any case, but for metadata and the like. */
  readonly allowedNetworks?: readonly AddressRange[];
  /** Connections go through it. */
  readonly proxy?: Proxy | undefined;
  /** Idle connections kept, over all endpoints. */
  readonly idleConnectionsMax?: number;
  /** For tests; the system's look-up by default. */
  readonly resolve?: ResolveName;
}

export interface HttpClient {
  post(request: HttpPost): Promise<HttpOutcome>;
  /** Connections that are open and unused. */
  idleConnections(): number;
  /** Cuts every connection. Call it when no attempt is under way: such an attempt would be called a failure. */
  close(): void;
}

const BODY_BYTES_MAX = 16 * 1024;
const HEADERS_BYTES_MAX = 16 * 1024;
/** 1xx responses before the answer. More are no answer. */
const INFORMATIONAL_MAX = 10;
const IDLE_CONNECTIONS_MAX = 2_048;
/** Endpoints that are remembered taken apart; then it begins anew. */
const TARGETS_MAX = 4_096;
/** Where the endpoint does not say how long it keeps a connection; many servers keep them for 5 s or for 60 s. */
const KEEP_ALIVE_MS = 15_000;

const CUT = new Error('the connection is given up');

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const connector = createVettedConnector(
    {
      allowPrivate: options.allowPrivateAddresses,
      ...(options.allowedNetworks && { allowedNetworks: options.allowedNetworks }),
    },
    options.resolve,
    options.proxy,
  );
  const connections = new ConnectionPool<Connection>(
    (origin, onClosed) => new Connection(origin, connector, onClosed),
    options.idleConnectionsMax ?? IDLE_CONNECTIONS_MAX,
  );
  const targets = new Map<string, Target | undefined>();
  const targetOf = (endpoint: string): Target | undefined => {
    let target = targets.get(endpoint);
    if (target || targets.has(endpoint)) return target;
    if (targets.size === TARGETS_MAX) targets.clear();
    target = parseTarget(endpoint);
    targets.set(endpoint, target);
    return target;
  };
  return {
    post(request) {
      const target = targetOf(request.endpoint);
      if (!target) {
        const message = 'not an http or https URL';
        return Promise.resolve({
          outcome: 'failure',
          failure: 'unusable_endpoint',
          message,
          status: null,
          head: '',
          body: '',
          durationMs: 0,
        });
      }
      return new Promise((resolve) => {
        new Attempt(connections, target, request, options.timeoutMs, resolve).send();
      });
    },
    idleConnections: () => connections.idleCount,
    close: () => connections.close(),
  };
}

/** An endpoint, taken apart once and not for each attempt. */
interface Target {
  readonly origin: string;
  readonly path: string;
  /** Of the credentials in the URL. */
  readonly authorization: string | undefined;
}

/** Undefined for what is no http or https URL. */
function parseTarget(endpoint: string): Target | undefined {
  const url = URL.parse(endpoint);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  const { origin, username, password, pathname, search } = url;
  const credentials = [username, password].map(decodeComponent).join(':');
  return {
    origin,
    path: pathname + search,
    authorization:
      username || password ? `Basic ${Buffer.from(credentials).toString('base64')}` : undefined,
  };
}

/** One undici client, which is one connection at a time. */
class Connection {
  readonly origin: string;
  readonly client: Client;
  /** From the moment it is being opened. */
  socket: OpenedSocket | undefined;
  /** Answers that came whole over the present socket. */
  answers = 0;

  constructor(
    origin: string,
    connector: VettedConnector,
    onClosed: (connection: Connection) => void,
  ) {
    this.origin = origin;
    this.client = new Client(origin, {
      connect: (target, callback) => {
        this.answers = 0;
        this.socket = connector.openSocket(target, (error, socket) =>
          socket ? callback(null, socket) : callback(error ?? new Error('no socket'), null),
        );
      },
      // The attempt's own deadline covers these; undici's would fire up to half a second late.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: HEADERS_BYTES_MAX,
      allowH2: false,
    });
    this.client.on('disconnect', () => onClosed(this));
  }

  destroy(): void {
    // undici lets go of a socket only once it is open.
    this.socket?.destroy();
    // An error of our own: undici would make one each time, with its stack.
    void this.client.destroy(CUT);
  }
}

/** One request on its way; undici tells it what happens. */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #connections: ConnectionPool<Connection>;
  readonly #target: Target;
  readonly #request: HttpPost;
  readonly #resolve: (outcome: HttpOutcome) => void;
  readonly #startedAtMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #connection: Connection;
  #isOver = false;
  #wasReused = false;
  #hasAnswerBegun = false;
  #informationalCount = 0;
  #status: number | null = null;
  #head = '';
  #chunks: Buffer[] = [];
  #bodySizeBytes = 0;

  constructor(
    connections: ConnectionPool<Connection>,
    target: Target,
    request: HttpPost,
    timeoutMs: number,
    resolve: (outcome: HttpOutcome) => void,
  ) {
    this.#connections = connections;
    this.#target = target;
    this.#request = request;
    this.#resolve = resolve;
    this.#connection = connections.take(target.origin);
    // Node keeps all timers of one duration in one list: this is the cheapest exact deadline there is.
    this.#timer = setTimeout(() => this.#onDeadline(timeoutMs), timeoutMs);
  }

  send(): void {
    const { path, authorization } = this.#target;
    const headers =
      authorization === undefined
        ? this.#request.headers
        : { ...this.#request.headers, authorization };
    this.#connection.client.dispatch(
      { path, method: 'POST', headers, body: this.#request.body },
      this,
    );
  }

  onRequestStart(): void {
    this.#wasReused = this.#connection.answers > 0;
  }

  onResponseStarted(): void {
    this.#hasAnswerBegun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string,
  ): void {
    if (status >= 200) {
      this.#status = status;
      this.#head = headText(status, statusMessage, headers);
    } else if (++this.#informationalCount > INFORMATIONAL_MAX) {
      this.#fail('misbehaving_server', `more than ${INFORMATIONAL_MAX} informational responses`);
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#bodySizeBytes < BODY_BYTES_MAX) {
      // A copy: the chunk is a view that would keep the whole of what was read.
      this.#chunks.push(Buffer.from(chunk.subarray(0, BODY_BYTES_MAX - this.#bodySizeBytes)));
    }
    this.#bodySizeBytes += chunk.length;
    if (this.#bodySizeBytes > BODY_BYTES_MAX) this.#respond();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#connection.answers++;
    const connection = this.#connection;
    this.#respond(() => this.#connections.giveBack(connection));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isOver) return;
    if (this.#wasReused && !this.#hasAnswerBegun && isConnectionLoss(error)) {
      // Whatever becomes of the fresh one, there is no third.
      this.#wasReused = false;
      this.#connections.discard(this.#connection);
      this.#connection = this.#connections.open(this.#target.origin);
      this.send();
      return;
    }
    const context = {
      isCertificateBad: this.#connection.socket?.isCertificateBad() ?? false,
      hasHead: this.#status !== null,
    };
    const { failure, message } = classifyFailure(error, context);
    this.#fail(failure === 'status' ? 'other' : failure, message);
  }

  #onDeadline(timeoutMs: number): void {
    // A process that was busy reads late what came in time: let it read once more, then judge.
    setImmediate(() => this.#fail('timeout', `no complete answer within ${timeoutMs} ms`));
  }

  /** A status that is no success is the answer, whatever becomes of its body. */
  #fail(failure: Exclude<FailureClass, 'status'>, message: string): void {
    if (this.#status !== null && !isSuccessStatus(this.#status)) this.#respond();
    else this.#end({ outcome: 'failure', failure, message, status: this.#status });
  }

  #respond(keep?: () => void): void {
    if (this.#status !== null) this.#end({ outcome: 'response', status: this.#status }, keep);
  }

  #end(
    ending:
      | { outcome: 'response'; status: number }
      | {
          outcome: 'failure';
          failure: Exclude<FailureClass, 'status'>;
          message: string;
          status: number | null;
        },
    keepConnection: () => void = () => this.#connections.discard(this.#connection),
  ): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    keepConnection();
    const [chunk] = this.#chunks;
    const body =
      chunk && this.#chunks.length === 1
        ? chunk.toString()
        : Buffer.concat(this.#chunks).toString();
    this.#resolve({
      ...ending,
      head: toStorableText(this.#head),
      body: toStorableText(body),
      durationMs: Math.round(performance.now() - this.#startedAtMs),
    });
  }
}

/** As it is read aloud, not byte for byte; undici bounds its size. */
function headText(
  status: number,
  statusMessage: string | undefined,
  headers: IncomingHttpHeaders,
): string {
  let text = `HTTP/1.1 ${status} ${statusMessage ?? ''}`.trimEnd();
  for (const name in headers) {
    const values = headers[name];
    if (typeof values === 'string') text += `\n${name}: ${values}`;
    else for (const value of values ?? []) text += `\n${name}: ${value}`;
  }
  return text;
}

/** The part as it was before it was percent-encoded; as it stands where that was never valid. */
function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
