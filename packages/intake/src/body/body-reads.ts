/**
 * Bound on the time that parts of bodies take in a turn of the event loop.
 *
 * Used by `http/exchange.ts` and `stream/stream-bytes.ts`. Beside `body-pieces.ts`.
 */
/** Stops and starts the reading of a connection. */
export interface Throttle {
  pause(): unknown;
  resume(): unknown;
}

/** A chunk of so many bytes costs twice as much as an empty one: uWebSockets.js takes 0.5 µs to hand one over. */
const CHUNK_SIZE_BYTES_OF_DOUBLE_COST = 2_048;
/** In empty chunks, as each cost here: 4 ms. */
const TURN_COST_MAX = 6_000;
/** Of a new connection at once: the kernel keeps up to 128 KB of it, in chunks of one byte. */
const FIRST_ALLOWANCE = 24_000;
/** Node's client takes 1.7 µs to make a line and its chunk; at 400 it was cut once in ten runs. */
const ALLOWANCE_PER_MS = 1_000;
/**
 * The kernel keeps megabytes of a connection, and a client in Go or Java fills them again while they are read: 4 MB in
 * chunks of 29 bytes. They take 70 ms. With 80,000 half of such clients were cut.
 */
const ALLOWANCE_MAX = 120_000;
/** While several connections bring many chunks, each has its part of that, and no less than this: 25 ms. */
const SHARED_ALLOWANCE_MAX = 40_000;
/**
 * In one turn. A small buffer holds 14,000 lines in chunks of their own, but 80,000 chunks of one byte: 50 ms. A client in
 * Go that flushes gzip after each line makes chunks of 5 bytes, 39,000 in a turn and fewer than the allowance.
 */
const SMALL_BUFFER_COST_MAX = 30_000;
/** Of many chunks, in one turn. */
const BUSY_COST = 1_000;
const BUSY_FOR_MS = 1_000;

/**
 * Shares the event loop between connections whose bodies come in parts. uWebSockets.js calls back for each chunk and reads
 * a connection on in the same turn of the event loop, as long as its bytes fill 512 KB. A pause does not end that. But it keeps
 * the bytes of another connection for the next turn, also if they are there already.
 *
 * ```
 *   turn 1:  connection A, over TURN_COST_MAX ─▶ pause B, C, D      turn 2:  B …      turn 3:  C …
 * ```
 *
 * A connection that goes beyond the allowance alone is cut, unless the kernel bounds each turn itself
 * (`connections/receive-buffer.ts`). Ten senders of prepared chunks of 32 bytes kept every other connection waiting for seconds. The
 * allowance grows faster than clients in Node or Python make chunks. Clients in Go and Java are faster in a burst.
 */
export class BodyReads {
  readonly #monotonicNow: () => number;
  #areReceiveBuffersSmall = false;
  /** Read last is last. */
  readonly #open = new Set<BodyRead>();
  #turn = 0;
  #turnCost = 0;
  /** At the end of the last turn. */
  #busyCount = 0;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
  }

  /**
   * The kernel bounds each turn of the connections that come from now on (`connections/receive-buffer.ts`): all stay that bring lines. A
   * flood of tiny chunks is cut, and so is an earlier connection whose larger buffer makes a long turn.
   */
  trustReceiveBuffers(): void {
    this.#areReceiveBuffersSmall = true;
  }

  /**
   * From the first part of a body on. The caller closes or finishes it.
   *
   * @param onResumed - called after each resume.
   */
  open(connection: Throttle, onResumed?: () => void): BodyRead {
    const read = new BodyRead(connection, {
      onResumed,
      isFull: () => this.#turnCost > TURN_COST_MAX,
      isBufferSmall: () => this.#areReceiveBuffersSmall,
      openedAtMs: this.#monotonicNow(),
      spend: (cost) => this.#spend(read, cost),
      close: () => void this.#open.delete(read),
    });
    this.#open.add(read);
    if (this.#turnCost > TURN_COST_MAX) read.holdBack();
    return read;
  }

  #spend(read: BodyRead, cost: number): void {
    if (this.#turnCost === 0) setImmediate(this.#endTurn);
    const wasFull = this.#turnCost > TURN_COST_MAX;
    this.#turnCost += cost;
    if (read.lastTurn !== this.#turn) {
      const nowMs = this.#monotonicNow();
      read.grow(nowMs, this.#allowanceMax(read));
      if (this.#open.delete(read)) this.#open.add(read);
    }
    read.lastTurn = this.#turn;
    if (wasFull || this.#turnCost <= TURN_COST_MAX) return;
    for (const other of this.#open) if (other !== read) other.holdBack();
  }

  #allowanceMax(read: BodyRead): number {
    if (read.lastTurn < 0) return FIRST_ALLOWANCE;
    // Each turn is short, so each connection has all of it.
    if (this.#areReceiveBuffersSmall) return ALLOWANCE_MAX;
    const sharingCount = read.isBusy ? this.#busyCount : this.#busyCount + 1;
    return Math.max(SHARED_ALLOWANCE_MAX, ALLOWANCE_MAX / sharingCount);
  }

  readonly #endTurn = (): void => {
    this.#turn++;
    this.#turnCost = 0;
    this.#busyCount = 0;
    const nowMs = this.#monotonicNow();
    for (const read of this.#open) {
      read.endTurn(nowMs);
      if (read.isBusy) this.#busyCount++;
    }
  };
}

interface TurnOfReads {
  readonly onResumed: (() => void) | undefined;
  /** The turn has no time left for further connections. */
  readonly isFull: () => boolean;
  readonly isBufferSmall: () => boolean;
  readonly openedAtMs: number;
  readonly spend: (cost: number) => void;
  readonly close: () => void;
}

/** The reading of one connection. Its owner pauses and resumes it here alone. */
export class BodyRead implements Throttle {
  readonly #connection: Throttle;
  readonly #turn: TurnOfReads;
  #isWanted = true;
  #isHeldBack = false;
  #allowance = FIRST_ALLOWANCE;
  #grownAtMs: number;
  #turnCost = 0;
  #busyAtMs = -Infinity;
  lastTurn = -1;
  /** It brought many chunks during the last second. */
  isBusy = false;

  constructor(connection: Throttle, turn: TurnOfReads) {
    this.#connection = connection;
    this.#turn = turn;
    this.#grownAtMs = turn.openedAtMs;
  }

  /**
   * Counts a chunk that has come.
   *
   * @returns true if the connection is to be cut: it brings more than a client can make, and the turn is over.
   */
  isFlood(chunkSizeBytes: number): boolean {
    const cost = 1 + chunkSizeBytes / CHUNK_SIZE_BYTES_OF_DOUBLE_COST;
    this.#turn.spend(cost);
    this.#turnCost += cost;
    this.#allowance -= cost;
    if (this.#allowance >= 0) return false;
    return this.#turn.isBufferSmall()
      ? this.#turnCost > SMALL_BUFFER_COST_MAX
      : this.#turn.isFull();
  }

  /**
   * A turn begins: the client may have made more chunks since the last one. In a turn the allowance does not grow: on a busy
   * machine the reading takes longer than the time in which it would.
   */
  grow(nowMs: number, allowanceMax: number): void {
    const grown = this.#allowance + (nowMs - this.#grownAtMs) * ALLOWANCE_PER_MS;
    this.#grownAtMs = nowMs;
    this.#allowance = Math.min(allowanceMax, grown);
  }

  /** May be called again, as often as the connection must be marked as in use. */
  pause(): void {
    this.#isWanted = false;
    this.#connection.pause();
  }

  /** Bytes come again from now on, or from the next turn. */
  resume(): void {
    this.#isWanted = true;
    if (this.#turn.isFull()) this.#isHeldBack = true;
    else this.#resumeNow();
  }

  holdBack(): void {
    this.#isHeldBack = true;
    if (this.#isWanted) this.#connection.pause();
  }

  endTurn(nowMs: number): void {
    if (this.#turnCost > BUSY_COST) this.#busyAtMs = nowMs;
    this.#turnCost = 0;
    this.isBusy = nowMs - this.#busyAtMs < BUSY_FOR_MS;
    this.goOn();
  }

  goOn(): void {
    if (this.#isHeldBack && this.#isWanted) this.#resumeNow();
    this.#isHeldBack = false;
  }

  #resumeNow(): void {
    this.#connection.resume();
    this.#turn.onResumed?.();
  }

  /** Before the answer: the next request of the connection shall be read. */
  finish(): void {
    this.close();
    this.goOn();
  }

  /** The connection is gone. */
  close(): void {
    this.#turn.close();
  }
}
