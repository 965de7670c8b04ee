/**
 * Closes connections on which no whole head comes: a head that stops, or one that uWebSockets.js waits for without end
 * (a folded header, a NUL in a value). Its own limit is 10 s, and it calls no handler before a head is whole.
 *
 * uWebSockets.js passes the handle of a connection when it opens, and does not name the connection of a later request.
 * A handle must not be touched once its connection is closed, and only a connection without a request reports that. So
 * a request from an address ends the watch over all connections of this address that were open by then: one of them is
 * its own. These keep the limit of uWebSockets.js.
 *
 * An address takes 2.5 µs to read, a call takes 13, and the watch over a connection 6. So both are bounded by the tick:
 * in a process that is busier than that, connections have the limit of uWebSockets.js. Before: `server.ts`.
 */
import type { CutConnections, CutHandle } from './cut-connections.ts';

/** The handle of a connection, or of a request on it. */
export interface ConnectionHandle extends CutHandle {
  /** Of the client, in 4 or 16 bytes. */
  getRemoteAddress(): ArrayBuffer;
  /** The callback runs when the connection closes, unless a request on it has set another one. */
  onAborted(callback: () => void): unknown;
}

interface Silent {
  readonly handle: ConnectionHandle;
  tickCount: number;
}

/** How often `tick` is called while there is something to watch. */
export const SILENCE_TICK_MS = 250;
/**
 * 2.5 s. In ticks, not by a clock: after a standstill of the process the heads that came meanwhile are still unread, and
 * between two ticks the sockets are read.
 */
const TICK_COUNT_MAX = 10;

/** Between two ticks: 1.2 ms of 250. */
const OPENED_COUNT_MAX = 200;
/** Between two ticks: 1.25 ms of 250, while there are connections to watch. Past it the watch over all of them ends. */
const HEARD_COUNT_MAX = 500;

export class SilentConnections {
  readonly #cuts: Pick<CutConnections, 'cut'>;
  readonly #byAddress = new Map<string, Set<Silent>>();
  #openedCount = 0;
  #heardCount = 0;

  constructor(cuts: Pick<CutConnections, 'cut'>) {
    this.#cuts = cuts;
  }

  /** A connection has opened. */
  opened(handle: ConnectionHandle): void {
    if (++this.#openedCount > OPENED_COUNT_MAX) return;
    const address = addressOf(handle);
    const silent = { handle, tickCount: 0 };
    const group = this.#byAddress.get(address);
    if (group === undefined) this.#byAddress.set(address, new Set([silent]));
    else group.add(silent);
    handle.onAborted(() => {
      const watched = this.#byAddress.get(address);
      watched?.delete(silent);
      if (watched?.size === 0) this.#byAddress.delete(address);
    });
  }

  /** A request has come, on a connection that is known by its address alone. */
  heard(handle: ConnectionHandle): void {
    if (this.#byAddress.size === 0) return;
    if (++this.#heardCount > HEARD_COUNT_MAX) this.#byAddress.clear();
    else this.#byAddress.delete(addressOf(handle));
  }

  /**
   * Closes the connections that have been silent for too long.
   *
   * @returns false if there is no connection to watch: the next tick is needed once a connection opens, and an idle process
   *   sleeps until then.
   */
  tick(): boolean {
    this.#openedCount = 0;
    this.#heardCount = 0;
    for (const group of this.#byAddress.values())
      // To close one takes it out of its group.
      for (const silent of group)
        if (++silent.tickCount > TICK_COUNT_MAX) this.#cuts.cut(silent.handle, 'silent');
    return this.#byAddress.size > 0;
  }
}

const addressOf = (handle: ConnectionHandle): string =>
  Buffer.from(handle.getRemoteAddress()).toString('latin1');
