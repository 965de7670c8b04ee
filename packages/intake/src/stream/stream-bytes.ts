/**
 * The body of a stream as it comes: the socket's pieces, one at a time and only when they are asked
 * for, inflated on the way. The socket is paused while a piece waits here, so TCP slows down a sender that is faster than the
 * broker. Only a sender of many small chunks is read ahead, up to a bound (`held-bytes.ts`).
 *
 * ```
 *   socket ── onData ─▶ one piece ── next() ─▶ (inflate, 64 KB at a time) ─▶ take-stream.ts
 *      ▲                   │
 *      └── pause, resume ──┘
 * ```
 *
 * Before: `stream-exchange.ts`. After: `split-lines.ts`.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
  type InflateRaw,
} from 'node:zlib';
import { BodyPieces } from '../body/body-pieces.ts';
import type { Throttle } from '../body/body-reads.ts';
import { isZlibWrapped, trailingBytes } from '../calls/inflate-body.ts';
import type { HeldByStream, Reading } from './held-bytes.ts';

/** `complete`: the sender has sent all. `cut`: the connection ended. `stopping`: we end. `idle`: no bytes came for too long. */
export type BytesEnd = 'complete' | 'cut' | 'stopping' | 'idle';

/** How often the connection is marked as in use: uWebSockets.js ends one that is silent for 10 s. */
const KEEP_ALIVE_INTERVAL_MS = 4_000;

/** In a turn of the event loop: such a sender is faster than its lines are taken. */
const MANY_CHUNKS = 64;
const SMALL_CHUNK_SIZE_BYTES_MAX = 512;

export class StreamBytes implements AsyncIterable<Uint8Array> {
  readonly #throttle: Throttle;
  readonly #idleTimeoutMs: number;
  readonly #held: HeldByStream | undefined;
  readonly #pieces: BodyPieces;
  #end: BytesEnd | undefined;
  #isPaused = false;
  #isDiscarding = false;
  readonly #cut = new AbortController();
  #wake: (() => void) | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** Of this turn of the event loop. */
  #chunkCount = 0;
  #chunkSizeBytes = 0;

  /**
   * @param openHeld - opens its share of the memory. Absent: as much as comes may be held.
   * @param cutConnection - calls `finish`.
   */
  constructor(
    throttle: Throttle,
    idleTimeoutMs: number,
    openHeld?: (stream: Reading) => HeldByStream,
    cutConnection: () => void = () => this.finish('cut'),
  ) {
    this.#throttle = throttle;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#held = openHeld?.({
      read: () => this.#resume(),
      holdBack: () => this.#holdBack(),
      cut: cutConnection,
    });
    this.#pieces = new BodyPieces(this.#held);
  }

  /** Why there is no more; undefined while there may be. */
  get end(): BytesEnd | undefined {
    return this.#end;
  }

  /** Aborted when the connection ends before the body. */
  get cut(): AbortSignal {
    return this.#cut.signal;
  }

  /**
   * A piece of the body; `bytes` are copied. They are read after this turn of the event loop: the socket may bring 80,000
   * chunks of one byte in one.
   *
   * @returns false if too much is held: the connection is to be cut.
   */
  push(bytes: Uint8Array, isLast: boolean): boolean {
    if (this.#end !== undefined || this.#isDiscarding) return true;
    if (!this.#pieces.add(bytes)) return false;
    if (this.#chunkCount === 0) {
      setImmediate(this.#endTurn);
      if (!isLast) this.#pause();
    }
    this.#chunkCount++;
    this.#chunkSizeBytes += bytes.length;
    if (isLast) this.#end = 'complete';
    return true;
  }

  readonly #endTurn = (): void => {
    const areSmall = this.#chunkSizeBytes < this.#chunkCount * SMALL_CHUNK_SIZE_BYTES_MAX;
    const readsAhead = areSmall && this.#chunkCount >= MANY_CHUNKS && this.#held?.mayReadAhead();
    this.#chunkCount = 0;
    this.#chunkSizeBytes = 0;
    // Small chunks that come at once take long, so they are read before the kernel keeps many.
    if (this.#isPaused && !this.#isDiscarding && this.#end === undefined)
      if (readsAhead) this.#held?.ask();
      // uWebSockets.js went on with the rest of its buffer, and began its 10 s anew.
      else this.#throttle.pause();
    this.#wake?.();
  };

  /** Ends it from our side. Received bytes are still read, except after a cut. */
  finish(end: BytesEnd): void {
    if (this.#end === undefined || end === 'cut') this.#end = end;
    if (end === 'cut') {
      this.#pieces.clear();
      this.#held?.close();
      this.#cut.abort();
    }
    this.#wake?.();
  }

  /** Drops the bytes that are here and all later ones; the sender is not held back any more. */
  discard(): void {
    this.#isDiscarding = true;
    this.#pieces.clear();
    this.#held?.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#read()) yield piece;
  }

  /** As the iterator, but each piece is valid until the next is asked for: its memory is used again. */
  async *pieces(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#read()) {
      yield piece;
      this.#pieces.reuse(piece);
    }
  }

  async *#read(): AsyncGenerator<Uint8Array, void, undefined> {
    const keepingAlive = setInterval(() => this.#keepAlive(), KEEP_ALIVE_INTERVAL_MS);
    try {
      while (true) {
        const piece = this.#pieces.shift();
        if (piece !== undefined) yield piece;
        else if (this.#end !== undefined) return;
        else await this.#nextPiece();
      }
    } finally {
      clearInterval(keepingAlive);
    }
  }

  #pause(): void {
    this.#isPaused = true;
    this.#throttle.pause();
  }

  #resume(): void {
    this.#isPaused = false;
    this.#throttle.resume();
    if (this.#wake !== undefined) this.#waitIdly();
  }

  #holdBack(): void {
    clearTimeout(this.#idle);
    if (this.#isDiscarding || this.#end !== undefined || this.#isPaused) return;
    this.#pause();
    if (this.#wake !== undefined) this.#held?.ask();
  }

  /** Also while it is paused: megabytes of gzip that have come at once take longer than 10 s to be taken. */
  #keepAlive(): void {
    if (this.#end !== undefined) return;
    if (this.#isPaused) {
      this.#throttle.resume();
      this.#throttle.pause();
    } else {
      this.#throttle.pause();
      this.#throttle.resume();
    }
  }

  async #nextPiece(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (!this.#isPaused) this.#waitIdly();
      else if (this.#held === undefined) this.#resume();
      else this.#held.ask();
    });
    this.#wake = undefined;
    clearTimeout(this.#idle);
  }

  #waitIdly(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.finish('idle'), this.#idleTimeoutMs);
  }
}

const INFLATED_PIECE_SIZE_BYTES = 64 * 1024;

/** Real lines reach 100; deflate's limit is 1,032. */
export const INFLATION_RATIO_MAX = 500;
/** The ratio of a body that has brought less means little, and a stream's pace bounds its cost. */
const RATIO_JUDGED_AFTER_SIZE_BYTES = 1_000_000;

/** The body inflates to more than `INFLATION_RATIO_MAX` times its size. */
export class InflationRatioExceeded extends Error {
  constructor() {
    super(`it inflates to more than ${INFLATION_RATIO_MAX} times its size`);
  }
}

/**
 * Inflates on the thread pool, a piece at a time and only while it is read: a bomb costs its lines, not its size. A cut
 * ends the inflation in the middle of a piece. Members and blocks without content inflate to zero bytes, so the pace
 * of the output does not bound the work: the input has a pace too. `deflate` is taken with and without the zlib wrapper, as in
 * `read-body.ts`.
 *
 * @param given - called before the inflater gets a piece, which waits until it resolves: with the size of the piece, and with
 * the bytes by which the pieces before it are larger than all that they inflated to, as far as no call before had them.
 * @throws InflationRatioExceeded
 * @throws Error of zlib if the bytes do not have the given encoding; the last pieces before that may be missing.
 */
export async function* inflated(
  bytes: StreamBytes,
  encoding: 'gzip' | 'deflate',
  given: (sizeBytes: number, emptySizeBytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await readFirst(pieces);
  if (!first) return;
  const inflater = createInflater(encoding, first);
  const received = { sizeBytes: 0 };
  let inflatedSizeBytes = 0;
  let emptySizeBytes = 0;
  const give = async (sizeBytes: number): Promise<void> => {
    // The inflater may have a piece whose output is not read yet.
    const smallerBy = inflater.bytesWritten - inflatedSizeBytes - 2 * INFLATED_PIECE_SIZE_BYTES;
    const more = Math.max(0, smallerBy - emptySizeBytes);
    emptySizeBytes += more;
    await given(sizeBytes, more);
  };
  const source = Readable.from(counted(withFirst(first, pieces), received, give), {
    objectMode: false,
    highWaterMark: 1,
  });
  // Its errors are thrown by the loop below.
  pipeline(source, inflater, { signal: bytes.cut }).catch(() => undefined);
  for await (const piece of inflater as AsyncIterable<Uint8Array>) {
    yield piece;
    inflatedSizeBytes += piece.length;
    const sizeBytes = inflater.bytesWritten;
    if (
      sizeBytes >= RATIO_JUDGED_AFTER_SIZE_BYTES &&
      inflatedSizeBytes > INFLATION_RATIO_MAX * sizeBytes
    )
      throw new InflationRatioExceeded();
  }
  if (inflater.bytesWritten < received.sizeBytes) throw new Error(trailingBytes(encoding));
}

/** Adds up the bytes that it hands on. */
async function* counted(
  pieces: AsyncIterable<Uint8Array>,
  received: { sizeBytes: number },
  given: (sizeBytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) {
    received.sizeBytes += piece.length;
    await given(piece.length);
    yield piece;
  }
}

/** Enough bytes to know their format (`isZlibWrapped`): a client may send the first of them alone. */
async function readFirst(
  pieces: AsyncGenerator<Uint8Array, void, undefined>,
): Promise<Uint8Array | undefined> {
  let first: Uint8Array | undefined;
  for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) {
    first = first ? Buffer.concat([first, piece.value]) : piece.value;
    if (first.length >= 2) break;
  }
  return first;
}

async function* withFirst(
  first: Uint8Array,
  rest: AsyncGenerator<Uint8Array, void, undefined>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield first;
  yield* rest;
}

function createInflater(
  encoding: 'gzip' | 'deflate',
  first: Uint8Array,
): Gunzip | Inflate | InflateRaw {
  const options = { chunkSize: INFLATED_PIECE_SIZE_BYTES };
  if (encoding === 'gzip') return createGunzip(options);
  return isZlibWrapped(first) ? createInflate(options) : createInflateRaw(options);
}
