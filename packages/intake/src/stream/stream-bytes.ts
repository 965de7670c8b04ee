/**
 * The body of a stream as it comes: the socket's pieces, one at a time and only when they are asked
 * for, inflated on the way. The socket is paused whenever a piece waits here, so a sender that is
 * faster than the broker is slowed down by TCP and nothing piles up.
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
import { BodyPieces, type Throttle } from '../http/body-pieces.ts';
import { isZlibWrapped, trailingBytes } from '../calls/inflate-body.ts';
import type { HeldByStream } from './held-bytes.ts';

/** `complete`: the sender said that it was all. `cut`: the connection ended. `stopping`: we end. `idle`: nothing came for too long. */
export type BytesEnd = 'complete' | 'cut' | 'stopping' | 'idle';

/** How often the connection is marked as in use: uWebSockets.js ends one that is silent for 10 s. */
const KEEP_ALIVE_INTERVAL_MS = 4_000;

export class StreamBytes implements AsyncIterable<Uint8Array> {
  readonly #throttle: Throttle;
  readonly #idleTimeoutMs: number;
  readonly #pieces: BodyPieces;
  #end: BytesEnd | undefined;
  #isPaused = false;
  #isDiscarding = false;
  readonly #cut = new AbortController();
  #wake: (() => void) | undefined;
  #willWake = false;

  /** @param held - absent: as much as comes may be held. */
  constructor(throttle: Throttle, idleTimeoutMs: number, held?: HeldByStream) {
    this.#pieces = new BodyPieces(held);
    this.#throttle = throttle;
    this.#idleTimeoutMs = idleTimeoutMs;
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
    if (isLast) this.#end = 'complete';
    else this.#pause();
    if (!this.#willWake) setImmediate(this.#wakeReader);
    return (this.#willWake = true);
  }

  readonly #wakeReader = (): void => {
    this.#willWake = false;
    this.#wake?.();
  };

  /** Ends it from our side. What was received is still read, except after a cut. */
  finish(end: BytesEnd): void {
    if (this.#end === undefined || end === 'cut') this.#end = end;
    if (end === 'cut') {
      this.#pieces.clear();
      this.#cut.abort();
    }
    this.#wake?.();
  }

  /** Drops what is here and what still comes; the sender is not held back any more. */
  discard(): void {
    this.#isDiscarding = true;
    this.#pieces.clear();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
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

  /** For each piece: uWebSockets.js goes on with what it has read already, and each begins its 10 s anew. */
  #pause(): void {
    this.#isPaused = true;
    this.#throttle.pause();
  }

  #resume(): void {
    this.#isPaused = false;
    this.#throttle.resume();
  }

  /** Also while it is paused: megabytes of gzip that have come at once take longer than 10 s to be taken. */
  #keepAlive(): void {
    if (this.#end !== undefined) return;
    if (this.#isPaused) {
      this.#resume();
      this.#pause();
    } else {
      this.#pause();
      this.#resume();
    }
  }

  async #nextPiece(): Promise<void> {
    if (this.#isPaused) this.#resume();
    const idle = setTimeout(() => this.finish('idle'), this.#idleTimeoutMs);
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    clearTimeout(idle);
  }
}

const INFLATED_PIECE_SIZE_BYTES = 64 * 1024;

/** Real lines reach 100; deflate's limit is 1,032. */
export const INFLATION_RATIO_MAX = 500;
/** The ratio of a body that has brought less says little, and a stream's pace bounds what it costs. */
const RATIO_JUDGED_AFTER_SIZE_BYTES = 1_000_000;

/** The body inflates to more than `INFLATION_RATIO_MAX` times its size. */
export class InflationRatioExceeded extends Error {
  constructor() {
    super(`it inflates to more than ${INFLATION_RATIO_MAX} times its size`);
  }
}

/**
 * Inflates on the thread pool, a piece at a time and only while it is read: a bomb costs its lines, not its size. A cut
 * ends the inflation in the middle of a piece. Members and blocks without content inflate to nothing, so the speed of what
 * is made of them does not bound the work: what is given has one too. `deflate` is taken with and without the zlib wrapper, as in
 * `read-body.ts`.
 *
 * @param given - called with the size of each piece before the inflater gets it, which waits until it resolves.
 * @throws InflationRatioExceeded
 * @throws Error of zlib if the bytes are not what the encoding says; the last pieces before that may be missing.
 */
export async function* inflated(
  bytes: StreamBytes,
  encoding: 'gzip' | 'deflate',
  given: (sizeBytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await readFirst(pieces);
  if (!first) return;
  const inflater = createInflater(encoding, first);
  const received = { sizeBytes: 0 };
  const source = Readable.from(counted(withFirst(first, pieces), received, given), {
    objectMode: false,
    highWaterMark: 1,
  });
  // Its errors are thrown by the loop below.
  pipeline(source, inflater, { signal: bytes.cut }).catch(() => undefined);
  let inflatedSizeBytes = 0;
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

/** Adds up what is handed on. */
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

/** Enough bytes to tell what they are (`isZlibWrapped`): a client may send the first of them alone. */
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
