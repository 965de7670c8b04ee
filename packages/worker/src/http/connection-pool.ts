/**
 * Which open connection serves which origin next, and how many may lie idle.
 *
 * The latest used is taken first, so that under little load the others age and go. Idle connections are bounded over
 * all origins together; beyond the bound the one that is idle longest goes, whatever its origin. A connection that
 * has been idle for as long as the other side keeps it is not used again, and is closed within seconds.
 *
 * Knows nothing of HTTP; used by `http-client.ts`.
 */

export interface PooledConnection {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Set when it is given back. */
  idleUntilMs: number;
  destroy(): void;
}

const LOOK_INTERVAL_MS = 1_000;

export class ConnectionPool<Connection extends PooledConnection> {
  readonly #open: (origin: string, onClosed: (connection: Connection) => void) => Connection;
  readonly #idleMax: number;
  readonly #monotonicNow: () => number;
  /** In the order in which they became idle. */
  readonly #idle = new Set<Connection>();
  /** The latest used last. An empty one stays until the next look: most are wanted again at once. */
  readonly #idleByOrigin = new Map<string, Connection[]>();
  readonly #all = new Set<Connection>();
  /** One for all of them, and only while one is idle. */
  #timer: NodeJS.Timeout | undefined;

  /** @param open - calls `onClosed` when the connection is closed, by either side. */
  constructor(
    open: (origin: string, onClosed: (connection: Connection) => void) => Connection,
    idleMax: number,
    monotonicNow: () => number = () => performance.now(),
  ) {
    this.#open = open;
    this.#idleMax = idleMax;
    this.#monotonicNow = monotonicNow;
  }

  get idleCount(): number {
    return this.#idle.size;
  }

  /** An idle connection, or a fresh one. Nobody else has it until it is given back. */
  take(origin: string): Connection {
    const sameOrigin = this.#idleByOrigin.get(origin);
    for (let connection = sameOrigin?.pop(); connection; connection = sameOrigin?.pop()) {
      this.#idle.delete(connection);
      if (connection.idleUntilMs > this.#monotonicNow()) return connection;
      // The search goes on: one that has been idle longer may be kept longer by its other side.
      this.discard(connection);
    }
    return this.open(origin);
  }

  /** A fresh connection in any case. */
  open(origin: string): Connection {
    const connection = this.#open(origin, (closed) => {
      this.discard(closed);
    });
    this.#all.add(connection);
    return connection;
  }

  /** @param idleMsMax - so long it may lie idle. */
  release(connection: Connection, idleMsMax: number): void {
    connection.idleUntilMs = this.#monotonicNow() + idleMsMax;
    this.#idle.add(connection);
    this.#timer ??= setInterval(() => this.#look(), LOOK_INTERVAL_MS);
    const sameOrigin = this.#idleByOrigin.get(connection.origin);
    if (sameOrigin) sameOrigin.push(connection);
    else this.#idleByOrigin.set(connection.origin, [connection]);
    if (this.#idle.size <= this.#idleMax) return;
    const [longestIdle] = this.#idle;
    if (longestIdle) this.discard(longestIdle);
  }

  /** Closes it, idle or not. */
  discard(connection: Connection): void {
    this.#forgetIdle(connection);
    this.#all.delete(connection);
    connection.destroy();
  }

  close(): void {
    for (const connection of this.#all) this.discard(connection);
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = this.#monotonicNow();
    for (const connection of this.#idle)
      if (connection.idleUntilMs <= nowMs) this.discard(connection);
    for (const [origin, { length }] of this.#idleByOrigin)
      if (length === 0) this.#idleByOrigin.delete(origin);
    if (this.#idle.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #forgetIdle(connection: Connection): void {
    if (!this.#idle.delete(connection)) return;
    const sameOrigin = this.#idleByOrigin.get(connection.origin) ?? [];
    sameOrigin.splice(sameOrigin.lastIndexOf(connection), 1);
  }
}
