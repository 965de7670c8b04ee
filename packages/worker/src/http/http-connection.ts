/**
 * One lazily opened connection to an endpoint, one request at a time.
 *
 * If bytes come while no request waits for an answer, the connection ends, as it does if the other side ends it.
 * Between `http-attempt.ts`, which uses it, and `vetted-connection.ts` of `platform`, which opens it.
 */
import type { Socket } from 'node:net';
import type { PooledConnection, Route } from './connection-pool.ts';
import { LastHead } from './http-response.ts';
import type {
  ConnectTarget,
  OpenedSocket,
  VettedConnector,
} from '@sluice/platform/outgoing/vetted-connection';

/** The request that waits for the answer. Not called any more once it has let go. */
export interface ConnectionUser {
  /** @param bytes - only within the call. */
  onBytes(bytes: Buffer): void;
  /** The other side has ended the connection. */
  onEnd(): void;
  /** It could not be opened, or it broke. */
  onBroken(error: Error): void;
}

/** One buffer for all connections: a user copies the bytes that it keeps. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

const TLS_WEIGHT = 4;

/** Route of a connection, with its target. */
export interface ConnectRoute extends Route {
  readonly target: ConnectTarget;
}

export class Connection implements PooledConnection {
  readonly route: ConnectRoute;
  readonly weight: number;
  readonly #connector: VettedConnector;
  readonly #onClosed: (connection: Connection) => void;
  #opening: OpenedSocket | undefined;
  #socket: Socket | undefined;
  #user: ConnectionUser | undefined;
  #isOver = false;
  readonly lastHead = new LastHead();
  /** Answers that came whole. */
  answers = 0;
  idleUntilMs = 0;

  /** @param onClosed - called when it is closed, by either side, while no request uses it. */
  constructor(
    route: ConnectRoute,
    connector: VettedConnector,
    onClosed: (connection: Connection) => void,
  ) {
    this.route = route;
    this.weight = route.target.protocol === 'https:' ? TLS_WEIGHT : 1;
    this.#connector = connector;
    this.#onClosed = onClosed;
  }

  /** Reported by TLS. */
  get isCertificateBad(): boolean {
    return this.#opening?.isCertificateBad() ?? false;
  }

  /** False while some of the request has not gone out yet. */
  get hasSentAll(): boolean {
    return this.#socket?.writableLength === 0;
  }

  /**
   * Sends a request, and passes the answer's bytes to `user` until it lets go.
   *
   * @param begin - goes out in Latin-1.
   * @param rest - the part in UTF-8 after it; may be empty.
   */
  send(begin: string, rest: string, user: ConnectionUser): void {
    this.#user = user;
    if (this.#socket) this.#write(this.#socket, begin, rest);
    else {
      const onOpened = (error: Error | null, socket: Socket | null): void => {
        if (this.#isOver) socket?.on('error', () => {}).destroy();
        else if (socket) {
          this.#listen(socket);
          this.#write(socket, begin, rest);
        } else user.onBroken(error ?? new Error('no socket'));
      };
      // A stream whose pieces have memory of their own would be a tenth of the cost of sending.
      const callback = (sizeBytes: number): boolean => {
        this.#onBytes(READ_BUFFER.subarray(0, sizeBytes));
        return true;
      };
      this.#opening = this.#connector.openSocket(this.route.target, onOpened, {
        buffer: READ_BUFFER,
        callback,
      });
    }
  }

  /** The answer is complete. */
  letGo(): void {
    this.#user = undefined;
  }

  destroy(): void {
    this.#isOver = true;
    this.#user = undefined;
    this.#opening?.destroy();
    this.#socket?.destroy();
  }

  #listen(socket: Socket): void {
    this.#socket = socket;
    socket
      .on('data', (bytes: Buffer) => this.#onBytes(bytes))
      .on('end', () => {
        if (this.#user) this.#user.onEnd();
        else this.#close();
      })
      // Also of a socket that is closed already.
      .on('error', (error) => {
        if (this.#user) this.#user.onBroken(error);
        else this.#close();
      })
      // One that came through a proxy was paused.
      .resume();
  }

  #onBytes(bytes: Buffer): void {
    if (this.#user) this.#user.onBytes(bytes);
    else this.#close();
  }

  #write(socket: Socket, begin: string, rest: string): void {
    if (rest === '') socket.write(begin, 'latin1');
    else {
      socket.cork();
      socket.write(begin, 'latin1');
      socket.write(rest);
      socket.uncork();
    }
  }

  #close(): void {
    if (this.#isOver) return;
    this.destroy();
    this.#onClosed(this);
  }
}
