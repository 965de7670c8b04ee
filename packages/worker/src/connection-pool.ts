/**
 * Which open connection serves which origin next, and how many may lie idle.
 *
 * The latest used is taken first, so that under little load the others age and go. Over all origins
 * at most so many are kept; beyond that the one that is idle longest goes, whosever it is.
 *
 * Knows nothing of HTTP; used by `http-client.ts`.
 */

export interface PooledConnection {
  /** Scheme, host and port. */
  readonly origin: string;
  destroy(): void;
}

export class ConnectionPool<Connection extends PooledConnection> {
  readonly #open: (origin: string, onClosed: (connection: Connection) => void) => Connection;
  readonly #idleMax: number;
  /** In the order in which they became idle. */
  readonly #idle = new Set<Connection>();
  readonly #idleByOrigin = new Map<string, Connection[]>();
  readonly #all = new Set<Connection>();

  /** @param open - calls `onClosed` when the connection is closed by whomever. */
  constructor(
    open: (origin: string, onClosed: (connection: Connection) => void) => Connection,
    idleMax: number,
  ) {
    this.#open = open;
    this.#idleMax = idleMax;
  }

  get idleCount(): number {
    return this.#idle.size;
  }

  /** An idle connection, or a fresh one. Nobody else has it until it is given back. */
  take(origin: string): Connection {
    const connection = this.#idleByOrigin.get(origin)?.at(-1);
    if (!connection) return this.open(origin);
    this.#forgetIdle(connection);
    return connection;
  }

  /** A fresh connection in any case. */
  open(origin: string): Connection {
    const connection = this.#open(origin, (closed) => {
      // One that is in use is its user's: undici may be opening it anew for the request that waits.
      if (this.#idle.has(closed)) this.discard(closed);
    });
    this.#all.add(connection);
    return connection;
  }

  giveBack(connection: Connection): void {
    this.#idle.add(connection);
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
  }

  #forgetIdle(connection: Connection): void {
    if (!this.#idle.delete(connection)) return;
    const sameOrigin = this.#idleByOrigin.get(connection.origin) ?? [];
    sameOrigin.splice(sameOrigin.lastIndexOf(connection), 1);
    if (sameOrigin.length === 0) this.#idleByOrigin.delete(connection.origin);
  }
}
