/**
 * Pieces of a body that comes in parts, copied, in their order.
 *
 * Small ones are put together: a chunk may have one byte, and kept by itself it would hold 200 bytes of memory. A body of
 * 4 MB in such chunks was 1 GB.
 *
 * Before: `exchange.ts`, `stream/stream-bytes.ts`, with what the socket brings.
 */
import type { CallCounter } from '../calls/count-calls.ts';
import type { NextTurn } from '../calls/read-body.ts';

/** As much capacity a piece has that is made of small ones. */
const PIECE_SIZE_BYTES = 4_096;
/** Counted between two looks at the clock, in some 0.2 ms. */
const STEP_SIZE_BYTES = 65_536;
const NO_BYTES = new Uint8Array();

/** What pieces take of the memory that all bodies share. */
interface PieceCapacity {
  readonly take: (sizeBytes: number) => boolean;
  readonly release: (sizeBytes: number) => void;
}

export class BodyPieces {
  readonly #capacity: PieceCapacity | undefined;
  #pieces: Uint8Array[] = [];
  /** The last piece, where it has capacity left, and how much of it is filled. */
  #open: Uint8Array | undefined;
  #openSizeBytes = 0;
  #sizeBytes = 0;

  /** @param capacity - undefined: there is always some. */
  constructor(capacity?: PieceCapacity) {
    this.#capacity = capacity;
  }

  /**
   * @param bytes - are copied.
   * @returns false where there is no capacity for them.
   */
  add(bytes: Uint8Array): boolean {
    if (this.#capacity?.take(bytes.length) === false) return false;
    this.#sizeBytes += bytes.length;
    this.#append(bytes);
    return true;
  }

  #append(bytes: Uint8Array): void {
    const rest = this.#fillOpen(bytes);
    if (rest.length >= PIECE_SIZE_BYTES) this.#pieces.push(new Uint8Array(rest));
    else if (rest.length > 0) {
      this.#open = new Uint8Array(PIECE_SIZE_BYTES);
      this.#open.set(rest);
      this.#openSizeBytes = rest.length;
      this.#pieces.push(this.#open);
    }
  }

  /** @returns the first piece, which is forgotten; `undefined` if there is none. */
  shift(): Uint8Array | undefined {
    const bytes = this.#takeFirst();
    if (bytes !== undefined) this.#capacity?.release(bytes.length);
    return bytes;
  }

  /** @returns all of them, which are forgotten, with `last` behind them. */
  joinedWith(last: Uint8Array): Buffer {
    const sizeBytes = this.#sizeBytes + last.length;
    this.#append(last);
    // What the open piece has capacity for is beyond the size.
    const whole = Buffer.concat(this.#pieces, sizeBytes);
    this.clear();
    return whole;
  }

  /** Forgets all of them. */
  clear(): void {
    this.#capacity?.release(this.#sizeBytes);
    this.#pieces = [];
    this.#open = undefined;
    this.#sizeBytes = 0;
  }

  /**
   * Has all pieces counted, in turns, and forgets them; those too that come meanwhile.
   *
   * @returns false: the sender is gone.
   */
  async countInTurns(counter: CallCounter, nextTurn: NextTurn): Promise<boolean> {
    for (let turn = await nextTurn(); turn !== undefined;) {
      const piece = this.#takeFirst();
      if (piece === undefined) return true;
      for (let at = 0; turn !== undefined && at < piece.length; at += STEP_SIZE_BYTES) {
        counter.add(piece.subarray(at, at + STEP_SIZE_BYTES));
        if (turn.isOver()) turn = await nextTurn();
      }
      this.#capacity?.release(piece.length);
    }
    return false;
  }

  /** Has all pieces counted at once, then `last`, and forgets them. */
  countAtOnce(counter: CallCounter, last: Uint8Array): void {
    for (let piece = this.shift(); piece !== undefined; piece = this.shift()) counter.add(piece);
    counter.add(last);
  }

  /** The caller releases what it took. */
  #takeFirst(): Uint8Array | undefined {
    const piece = this.#pieces.shift();
    if (piece === undefined) return undefined;
    const bytes = piece === this.#open ? this.#closeOpen(piece) : piece;
    this.#sizeBytes -= bytes.length;
    return bytes;
  }

  #fillOpen(bytes: Uint8Array): Uint8Array {
    if (this.#open === undefined) return bytes;
    const spareSizeBytes = PIECE_SIZE_BYTES - this.#openSizeBytes;
    if (bytes.length < spareSizeBytes) {
      this.#open.set(bytes, this.#openSizeBytes);
      this.#openSizeBytes += bytes.length;
      return NO_BYTES;
    }
    const some = bytes.subarray(0, spareSizeBytes);
    this.#open.set(some, this.#openSizeBytes);
    this.#openSizeBytes += some.length;
    if (this.#openSizeBytes === PIECE_SIZE_BYTES) this.#open = undefined;
    return bytes.subarray(spareSizeBytes);
  }

  #closeOpen(piece: Uint8Array): Uint8Array {
    this.#open = undefined;
    return piece.subarray(0, this.#openSizeBytes);
  }
}

/** A smaller chunk takes more time to hand over than to read; hardly a line of a stream is so short. */
const TINY_CHUNK_SIZE_BYTES_MAX = 32;
/** Of all connections in one turn of the event loop: handed over in some 4 ms. */
const TINY_CHUNKS_A_TURN_MAX = 2_048;
/** A connection that brings no more in a turn is not the one that floods. */
const OWN_TINY_CHUNKS_A_TURN_MIN = 256;

/**
 * The small chunks of one connection. uWebSockets.js calls back for each chunk, and reads on in the same turn of the event loop
 * for as long as bytes come: in chunks of one byte, 2 MB were 380,000 calls and ten senders kept every other connection waiting
 * for more than a minute. A pause does not end that; a cut does.
 */
export class TinyChunks {
  static #turn = 0;
  static #countOfAll = 0;
  static readonly #endTurn = (): void => {
    TinyChunks.#turn++;
    TinyChunks.#countOfAll = 0;
  };
  #lastTurn = -1;
  #count = 0;

  /** @returns true if the connection is to be cut: it brings too many of them in this turn. */
  isFlood(chunkSizeBytes: number): boolean {
    if (chunkSizeBytes >= TINY_CHUNK_SIZE_BYTES_MAX) return false;
    if (++TinyChunks.#countOfAll === 1) setImmediate(TinyChunks.#endTurn);
    if (this.#lastTurn !== TinyChunks.#turn) this.#count = 0;
    this.#lastTurn = TinyChunks.#turn;
    this.#count++;
    return (
      this.#count > OWN_TINY_CHUNKS_A_TURN_MIN && TinyChunks.#countOfAll > TINY_CHUNKS_A_TURN_MAX
    );
  }
}
