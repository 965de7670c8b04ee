/**
 * One request on one connection, from its first byte to its outcome: what undici tells of it, its deadline,
 * and the one case in which it is sent again.
 *
 * The only file that imports undici. Between `http-client.ts` and `vetted-connection.ts`.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isSuccessStatus, type FailureClass } from '@sluice/domain/delivery-failure';
import { toStorableText } from '@sluice/domain/storable-text';
import { Client, type Dispatcher } from 'undici';
import { classifyFailure, isConnectionLoss } from './classify-failure.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { HttpOutcome, HttpPost } from './http-outcome.ts';
import type { OpenedSocket, VettedConnector } from './vetted-connection.ts';

const BODY_BYTES_MAX = 16 * 1024;
const HEADERS_BYTES_MAX = 16 * 1024;
/** 1xx responses before the answer. More are no answer. */
const INFORMATIONAL_MAX = 10;
/** Where the endpoint does not say how long it keeps a connection; many servers keep them for 5 s or for 60 s. */
const KEEP_ALIVE_MS = 15_000;

const CUT = new Error('the connection is given up');

/** An endpoint, taken apart once and not for each attempt. */
export interface Target {
  readonly origin: string;
  readonly path: string;
  /** Of the credentials in the URL. */
  readonly authorization: string | undefined;
}

/** One undici client, which is one connection at a time. */
export class Connection {
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
export class Attempt implements Dispatcher.DispatchHandler {
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
