/**
 * One request from its first byte to its outcome: its deadline, and the one case in which it is sent again.
 *
 * Between `http-client.ts` and `http-connection.ts`; `http-response.ts` reads.
 */
import { isSuccessStatus, type FailureClass } from '@sluice/domain/delivery/delivery-failure';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { afterReading } from '@sluice/platform/process/within';
import { classifyFailure, isConnectionLoss } from './classify-failure.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { Connection, ConnectionUser, ConnectRoute } from './http-connection.ts';
import type { HttpOutcome } from './http-outcome.ts';
import { ResponseReader } from './http-response.ts';

/** Used if the endpoint does not state how long it keeps a connection; many servers keep them for 5 s or for 60 s. */
const KEEP_ALIVE_MS = 15_000;

/** One request on its way. */
export class Attempt implements ConnectionUser {
  readonly #connections: ConnectionPool<ConnectRoute, Connection>;
  readonly #route: ConnectRoute;
  readonly #begin: string;
  readonly #rest: string;
  readonly #resolve: (outcome: HttpOutcome) => void;
  readonly #startedAtMs = performance.now();
  #timer: NodeJS.Timeout;
  readonly #timeoutMs: number;
  #connection: Connection;
  readonly #reader: ResponseReader;
  #isOver = false;

  /**
   * @param begin - of the request, as it goes out in Latin-1: its head, and its body if that is ASCII.
   * @param rest - as it goes out in UTF-8.
   */
  constructor(
    connections: ConnectionPool<ConnectRoute, Connection>,
    route: ConnectRoute,
    begin: string,
    rest: string,
    timeoutMs: number,
    resolve: (outcome: HttpOutcome) => void,
  ) {
    this.#connections = connections;
    this.#route = route;
    this.#begin = begin;
    this.#rest = rest;
    this.#resolve = resolve;
    this.#timeoutMs = timeoutMs;
    this.#connection = connections.take(route);
    this.#reader = new ResponseReader(KEEP_ALIVE_MS, this.#connection.lastHead);
    // Node keeps all timers of one duration in one list: this is the cheapest exact deadline there is.
    this.#timer = setTimeout(onDeadline, timeoutMs, this);
  }

  send(): void {
    this.#connection.send(this.#begin, this.#rest, this);
  }

  onBytes(bytes: Buffer): void {
    if (this.#isOver) return;
    const state = this.#reader.read(bytes);
    if (state === 'complete') this.#respond();
    else if (state === 'misbehaving') this.#fail('misbehaving_server', this.#reader.fault);
  }

  onEnd(): void {
    if (this.#isOver) return;
    if (this.#reader.end()) this.#respond();
    else
      this.#lose(
        'end_of_file',
        'the other side closed the connection before the end of its answer',
      );
  }

  onBroken(error: Error): void {
    if (this.#isOver) return;
    const isLost = isConnectionLoss(error);
    // Some servers reset a connection that they have closed.
    if (isLost && this.#reader.end()) {
      this.#respond();
      return;
    }
    const { failure, message } = classifyFailure(error, this.#connection.isCertificateBad);
    if (isLost) this.#lose(failure, message);
    else this.#fail(failure, message);
  }

  /** A busy process reads bytes late that came in time. So it reads once more before this is called. */
  onDeadline(): void {
    // Node counts whole milliseconds and may be one early: 3.999 s were seen for 4.
    const leftMs = this.#timeoutMs - (performance.now() - this.#startedAtMs);
    if (leftMs > 0 && !this.#isOver) {
      this.#timer = setTimeout(onDeadline, Math.ceil(leftMs), this);
      return;
    }
    this.#fail('timeout', `no complete answer within ${this.#timeoutMs} ms`);
  }

  /** The other side is gone. On a connection that was kept idle this may be no failure of the endpoint. */
  #lose(failure: ConnectionFailure, message: string): void {
    if (this.#connection.answers === 0 || this.#reader.hasBegun) {
      this.#fail(failure, message);
      return;
    }
    this.#connections.discard(this.#connection);
    // If the fresh connection fails too, there is no third.
    this.#connection = this.#connections.open(this.#route);
    this.send();
  }

  /** A status that is no success is the answer, even if its body fails. */
  #fail(failure: ConnectionFailure, message: string): void {
    if (this.#isOver) return;
    const { status } = this.#reader;
    this.#connections.discard(this.#connection);
    if (status !== null && !isSuccessStatus(status)) this.#end({ outcome: 'response', status });
    else this.#end({ outcome: 'failure', failure, message, status });
  }

  /** The answer is complete, or all of it that is kept has been read. */
  #respond(): void {
    const { status, keepAliveMs } = this.#reader;
    const connection = this.#connection;
    if (keepAliveMs > 0 && connection.hasSentAll) {
      connection.answers++;
      connection.letGo();
      this.#connections.release(connection, keepAliveMs);
    } else this.#connections.discard(connection);
    this.#end({ outcome: 'response', status: status as number });
  }

  #end(
    ending:
      | { outcome: 'response'; status: number }
      | {
          outcome: 'failure';
          failure: ConnectionFailure;
          message: string;
          status: number | null;
        },
  ): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#resolve({
      ...ending,
      head: toStorableText(this.#reader.head),
      body: toStorableText(this.#reader.body),
      durationMs: Math.round(performance.now() - this.#startedAtMs),
    });
  }
}

type ConnectionFailure = Exclude<FailureClass, 'status'>;

function onDeadline(attempt: Attempt): void {
  afterReading(() => attempt.onDeadline());
}
