/**
 * Gathers the writes that belong together into one write to a socket.
 *
 * A client of Postgres or Redis sends a statement or command some microtasks after its cause, so all of one turn of the
 * event loop come in a row. Used by `database/src/connection/connection.ts` and `platform/src/redis/redis.ts`.
 */
const QUIET_MICROTASKS = 8;

/** Holds back its writes from `cork` to `uncork`. */
export interface Corkable {
  cork(): void;
  uncork(): void;
}

export class GatheredWrites {
  readonly #findSocket: () => Corkable | undefined;
  #quietMicrotasks = QUIET_MICROTASKS;

  /** @param findSocket - asked at the first write of each row. Undefined: there is no connection yet. */
  constructor(findSocket: () => Corkable | undefined) {
    this.#findSocket = findSocket;
  }

  /** Before each write. */
  expectWrite(): void {
    const isGathering = this.#quietMicrotasks < QUIET_MICROTASKS;
    this.#quietMicrotasks = 0;
    if (!isGathering) void this.#gather();
  }

  async #gather(): Promise<void> {
    const socket = this.#findSocket();
    socket?.cork();
    for (; this.#quietMicrotasks < QUIET_MICROTASKS; this.#quietMicrotasks++)
      await Promise.resolve();
    socket?.uncork();
  }
}
