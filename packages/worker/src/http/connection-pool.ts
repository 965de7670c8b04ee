/**
 * Selects the connection for a request, and bounds the idle ones. A route is an origin, with the TLS material of the
 * webhook if it has its own.
 *
 * The latest used is taken first, so that under little load the others age and go. Idle connections are bounded by
 * their weight, over all routes together; beyond the bound the one of any route that is idle longest goes. A connection
 * that has been idle for as long as the other side keeps it is not used again, and is closed within seconds.
 *
 * Independent of HTTP; used by `http-client.ts`.
 */

/** Connections of routes with one key serve each other's requests. */
export interface Route {
  readonly key: string;
}

export interface PooledConnection {
  readonly route: Route;
  /** Memory while it is idle, in connections without TLS. At least 1. */
  readonly weight: number;
  /** Set when it is given back. */
  idleUntilMs: number;
  destroy(): void;
}

const LOOK_INTERVAL_MS = 1_000;
/** At one look; closing one takes 30 µs. */
const CLOSED_COUNT_MAX = 1_024;

export class ConnectionPool<Way extends Route, Connection extends PooledConnection> {
  readonly #open: (route: Way, onClosed: (connection: Connection) => void) => Connection;
  readonly #idleWeightMax: number;
  readonly #monotonicNow: () => number;
  /** In the order in which they became idle. */
  readonly #idle = new Set<Connection>();
  #idleWeight = 0;
  /** The latest used last. An empty one stays until the next look: most are wanted again at once. */
  readonly #idleByRoute = new Map<string, Connection[]>();
  readonly #all = new Set<Connection>();
  /** One for all of them, and only while one is idle. */
  #timer: NodeJS.Timeout | undefined;

  /** @param open - calls `onClosed` when the connection is closed, by either side. */
  constructor(
    open: (route: Way, onClosed: (connection: Connection) => void) => Connection,
    idleWeightMax: number,
    monotonicNow: () => number = () => performance.now(),
  ) {
    this.#open = open;
    this.#idleWeightMax = idleWeightMax;
    this.#monotonicNow = monotonicNow;
  }

  get idleCount(): number {
    return this.#idle.size;
  }

  /** An idle connection, or a fresh one. No other request has it until it is given back. */
  take(route: Way): Connection {
    const sameRoute = this.#idleByRoute.get(route.key);
    for (let connection = sameRoute?.pop(); connection; connection = sameRoute?.pop()) {
      this.#noteUsed(connection);
      if (connection.idleUntilMs > this.#monotonicNow()) return connection;
      // The search goes on: one that has been idle longer may be kept longer by its other side.
      this.discard(connection);
    }
    return this.open(route);
  }

  /** A fresh connection in any case. */
  open(route: Way): Connection {
    const connection = this.#open(route, (closed) => {
      this.discard(closed);
    });
    this.#all.add(connection);
    return connection;
  }

  /** @param idleMsMax - so long it may lie idle. */
  release(connection: Connection, idleMsMax: number): void {
    connection.idleUntilMs = this.#monotonicNow() + idleMsMax;
    this.#idle.add(connection);
    this.#idleWeight += connection.weight;
    this.#timer ??= setInterval(() => this.#look(), LOOK_INTERVAL_MS);
    const sameRoute = this.#idleByRoute.get(connection.route.key);
    if (sameRoute) sameRoute.push(connection);
    else this.#idleByRoute.set(connection.route.key, [connection]);
    for (const longestIdle of this.#idle) {
      if (this.#idleWeight <= this.#idleWeightMax) return;
      this.discard(longestIdle);
    }
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
    let closedCount = 0;
    for (const connection of this.#idle) {
      if (connection.idleUntilMs > nowMs) continue;
      this.discard(connection);
      if (++closedCount === CLOSED_COUNT_MAX) break;
    }
    for (const [key, { length }] of this.#idleByRoute)
      if (length === 0) this.#idleByRoute.delete(key);
    if (this.#idle.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #forgetIdle(connection: Connection): void {
    if (!this.#noteUsed(connection)) return;
    const sameRoute = this.#idleByRoute.get(connection.route.key) ?? [];
    sameRoute.splice(sameRoute.lastIndexOf(connection), 1);
  }

  /** False if it was not idle. */
  #noteUsed(connection: Connection): boolean {
    const wasIdle = this.#idle.delete(connection);
    if (wasIdle) this.#idleWeight -= connection.weight;
    return wasIdle;
  }
}
