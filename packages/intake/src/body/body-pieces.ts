/**
 * Pieces of a body that comes in parts, copied, in their order.
 *
 * Small ones are put together: a chunk may have one byte, and kept by itself it would hold 200 bytes of memory. A body of
 * 4 MB in such chunks was 1 GB.
 *
 * Before: `http/exchange.ts`, `stream/stream-bytes.ts`, with the bytes of the socket. Beside `body-reads.ts`.
 */
import type { CallCounter } from '../calls/count-calls.ts';
import type { NextTurn } from '../calls/read-body.ts';

/**
 * As much capacity a piece has that is made of small ones. The first ones have less: no bound counts the free part, and
 * fifty thousand bodies of one byte each held 200 MB.
 */
const PIECE_SIZE_BYTES = 4_096;
const FIRST_PIECE_SIZE_BYTES = 256;
/** Of a large body: to make a piece of any size takes some 10 µs. */
export const LARGE_PIECE_SIZE_BYTES = 65_536;
/** Counted between two looks at the clock, in some 0.1 ms; before V8 has compiled the loop, in 1 ms. */
const STEP_SIZE_BYTES = 8_192;
const NO_BYTES = new Uint8Array();

/** Blocks of `LARGE_PIECE_SIZE_BYTES` that are used again. */
interface Blocks {
  take(): Uint8Array;
  /** @param bytes - of a piece that has been read. */
  release(bytes: Uint8Array): void;
}

/** Share of the pieces in the memory of all bodies. */
interface PieceCapacity {
  readonly take: (sizeBytes: number) => boolean;
  readonly release: (sizeBytes: number) => void;
  /** Memory for large pieces. If absent, each is new. */
  readonly blocks?: Blocks;
}

export class BodyPieces {
  readonly #capacity: PieceCapacity | undefined;
  #pieces: Uint8Array[] = [];
  /** The last piece, if it has capacity left, and the filled part of it. */
  #open: Uint8Array | undefined;
  #openSizeBytes = 0;
  #sizeBytes = 0;

  /** @param capacity - undefined: there is always some. */
  constructor(capacity?: PieceCapacity) {
    this.#capacity = capacity;
  }

  /**
   * @param bytes - are copied.
   * @returns false if there is no capacity for them.
   */
  add(bytes: Uint8Array): boolean {
    if (this.#capacity?.take(bytes.length) === false) return false;
    this.#sizeBytes += bytes.length;
    this.#append(bytes);
    return true;
  }

  #append(bytes: Uint8Array): void {
    let rest = this.#fillOpen(bytes);
    while (rest.length > 0) {
      this.#open = this.#newPiece(rest.length);
      this.#openSizeBytes = 0;
      this.#pieces.push(this.#open);
      rest = this.#fillOpen(rest);
    }
  }

  #newPiece(sizeBytes: number): Uint8Array {
    if (this.#sizeBytes <= LARGE_PIECE_SIZE_BYTES)
      return new Uint8Array(Math.max(this.#smallPieceSizeBytes(), sizeBytes));
    return this.#capacity?.blocks?.take() ?? new Uint8Array(LARGE_PIECE_SIZE_BYTES);
  }

  /** Half of a body at most is free capacity. */
  #smallPieceSizeBytes(): number {
    return Math.min(PIECE_SIZE_BYTES, Math.max(FIRST_PIECE_SIZE_BYTES, this.#sizeBytes));
  }

  /** @returns the first piece, which is forgotten; `undefined` without a piece. */
  shift(): Uint8Array | undefined {
    const bytes = this.#takeFirst();
    if (bytes !== undefined) this.#capacity?.release(bytes.length);
    return bytes;
  }

  /** @returns all of them, which are forgotten, with `last` behind them. */
  joinedWith(last: Uint8Array): Buffer {
    const sizeBytes = this.#sizeBytes + last.length;
    this.#append(last);
    // The unused capacity of the open piece is beyond the size.
    const whole = Buffer.concat(this.#pieces, sizeBytes);
    this.clear();
    return whole;
  }

  /** Gives back the memory of a piece that `shift` returned. The caller has read it. */
  reuse(piece: Uint8Array): void {
    this.#capacity?.blocks?.release(piece);
  }

  /** Forgets all of them. */
  clear(): void {
    this.#capacity?.release(this.#sizeBytes);
    for (const piece of this.#pieces) this.reuse(piece);
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
      this.reuse(piece);
    }
    return false;
  }

  /** Has all pieces counted at once, then `last`, and forgets them. */
  countAtOnce(counter: CallCounter, last: Uint8Array): void {
    for (let piece = this.shift(); piece !== undefined; piece = this.shift()) {
      counter.add(piece);
      this.reuse(piece);
    }
    counter.add(last);
  }

  /** The caller releases the capacity of the piece. */
  #takeFirst(): Uint8Array | undefined {
    const piece = this.#pieces.shift();
    if (piece === undefined) return undefined;
    const bytes = piece === this.#open ? this.#closeOpen(piece) : piece;
    this.#sizeBytes -= bytes.length;
    return bytes;
  }

  #fillOpen(bytes: Uint8Array): Uint8Array {
    if (this.#open === undefined) return bytes;
    const spareSizeBytes = this.#open.length - this.#openSizeBytes;
    if (bytes.length < spareSizeBytes) {
      this.#open.set(bytes, this.#openSizeBytes);
      this.#openSizeBytes += bytes.length;
      return NO_BYTES;
    }
    const some = bytes.subarray(0, spareSizeBytes);
    this.#open.set(some, this.#openSizeBytes);
    this.#openSizeBytes += some.length;
    if (this.#openSizeBytes === this.#open.length) this.#open = undefined;
    return bytes.subarray(spareSizeBytes);
  }

  #closeOpen(piece: Uint8Array): Uint8Array {
    this.#open = undefined;
    return piece.subarray(0, this.#openSizeBytes);
  }
}
