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
import { pipeline, Readable, type Transform } from 'node:stream';
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { isZlibWrapped } from '../calls/read-body.ts';

/** `complete`: the sender said that it was all. `cut`: the connection ended. `stopping`: we end. `idle`: nothing came for too long. */
export type BytesEnd = 'complete' | 'cut' | 'stopping' | 'idle';

export interface Throttle {
  pause(): void;
  resume(): void;
}

/** How often the connection is marked as in use: uWebSockets.js ends one that is silent for 10 s. */
const KEEP_ALIVE_INTERVAL_MS = 4_000;

export class StreamBytes implements AsyncIterable<Uint8Array> {
  readonly #throttle: Throttle;
  readonly #idleTimeoutMs: number;
  #pieces: Uint8Array[] = [];
  #end: BytesEnd | undefined;
  #isPaused = false;
  #isDiscarding = false;
  #wake: (() => void) | undefined;

  constructor(throttle: Throttle, idleTimeoutMs: number) {
    this.#throttle = throttle;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /** Why there is no more; undefined while there may be. */
  get end(): BytesEnd | undefined {
    return this.#end;
  }

  /** A piece of the body; `bytes` are copied. */
  push(bytes: Uint8Array, isLast: boolean): void {
    if (this.#end !== undefined || this.#isDiscarding) return;
    if (bytes.length > 0) this.#pieces.push(new Uint8Array(bytes));
    if (isLast) this.#end = 'complete';
    else if (!this.#isPaused) {
      this.#isPaused = true;
      this.#throttle.pause();
    }
    this.#wake?.();
  }

  /** Ends it from our side. What was received is still read, except after a cut. */
  finish(end: BytesEnd): void {
    if (this.#end === undefined || end === 'cut') this.#end = end;
    if (end === 'cut') this.#pieces = [];
    this.#wake?.();
  }

  /** Drops what is here and what still comes; the sender is not held back any more. */
  discard(): void {
    this.#isDiscarding = true;
    this.#pieces = [];
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    while (true) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) yield piece;
      else if (this.#end !== undefined) return;
      else await this.#nextPiece();
    }
  }

  async #nextPiece(): Promise<void> {
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#throttle.resume();
    }
    const idle = setTimeout(() => this.finish('idle'), this.#idleTimeoutMs);
    const keepAlive = setInterval(() => {
      this.#throttle.pause();
      this.#throttle.resume();
    }, KEEP_ALIVE_INTERVAL_MS);
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    clearTimeout(idle);
    clearInterval(keepAlive);
  }
}

const INFLATED_PIECE_SIZE_BYTES = 64 * 1024;

/**
 * Inflates on the thread pool, a piece at a time: a bomb costs its lines, not its size. `deflate` is
 * taken with and without the zlib wrapper, as in `read-body.ts`.
 *
 * @throws Error of zlib where the bytes are not what the encoding says; the last pieces before that
 *   may be missing.
 */
export async function* inflated(
  bytes: StreamBytes,
  encoding: 'gzip' | 'deflate',
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await readFirst(pieces);
  if (!first) return;
  const inflater = createInflater(encoding, first);
  const source = Readable.from(withFirst(first, pieces), {
    objectMode: false,
    highWaterMark: 1,
  });
  // Its errors are thrown by the loop below.
  pipeline(source, inflater, () => undefined);
  yield* inflater as AsyncIterable<Uint8Array>;
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

function createInflater(encoding: 'gzip' | 'deflate', first: Uint8Array): Transform {
  const options = { chunkSize: INFLATED_PIECE_SIZE_BYTES };
  if (encoding === 'gzip') return createGunzip(options);
  return isZlibWrapped(first) ? createInflate(options) : createInflateRaw(options);
}
