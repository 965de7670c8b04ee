/**
 * Inflates the bytes of a compressed body, on the thread pool; a small one on the event loop.
 *
 * It never goes past the size limit: a 1 MB bomb of 1 GB costs the limit, or the counted part of a batch, a piece at a
 * time.
 *
 * Before: `inflate-in-turn.ts`, which gives it its turn. After: `read-body.ts`.
 */
import { promisify } from 'node:util';
import {
  createGunzip,
  createInflate,
  createInflateRaw,
  gunzip,
  gunzipSync,
  inflate,
  inflateRaw,
  inflateRawSync,
  inflateSync,
  type ZlibOptions,
} from 'node:zlib';
import { CallCounter } from './count-calls.ts';
import type { NextTurn, UninflatedBody } from './read-body.ts';

interface Inflated {
  readonly buffer: Uint8Array;
  readonly engine: { readonly bytesWritten: number };
}
type Inflate = (bytes: Uint8Array, options: ZlibOptions) => Promise<Inflated>;
type InflateAtOnce = (bytes: Uint8Array, options: ZlibOptions) => Inflated;

/** With `info` they return how many bytes they read, which the types do not know. */
const inflaters = {
  gzip: promisify(gunzip) as unknown as Inflate,
  deflate: promisify(inflate) as unknown as Inflate,
  deflateRaw: promisify(inflateRaw) as unknown as Inflate,
};
const inflatersAtOnce = {
  gzip: gunzipSync as unknown as InflateAtOnce,
  deflate: inflateSync as unknown as InflateAtOnce,
  deflateRaw: inflateRawSync as unknown as InflateAtOnce,
};
const formOf = (bytes: Uint8Array, encoding: 'gzip' | 'deflate'): keyof typeof inflaters =>
  encoding === 'deflate' && !isZlibWrapped(bytes) ? 'deflateRaw' : encoding;

/**
 * Inflates at most `sizeBytesMax` bytes. `deflate` is taken with and without the zlib wrapper, because clients send
 * both.
 *
 * @param nextTurn - for counting the calls in a body that is too large. Undefined if they are not counted.
 */
export async function inflateBody(
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  sizeBytesMax: number,
  nextTurn: NextTurn | undefined,
): Promise<Uint8Array | UninflatedBody> {
  const options = { maxOutputLength: sizeBytesMax, info: true };
  try {
    return wholeOf(await inflaters[formOf(bytes, encoding)](bytes, options), bytes, encoding);
  } catch (error) {
    if (!isTooLarge(error)) return invalid(error as Error, encoding);
    return nextTurn === undefined
      ? { outcome: 'too-large' }
      : { outcome: 'too-large', callCount: await countInflated(bytes, encoding, nextTurn) };
  }
}

/** A call of 300 bytes to 4 KB, as a client library sends it. */
const SMALL_SIZE_BYTES_MAX = 4_096;
/** To inflate so many bytes takes some 0.1 ms. */
const SMALL_INFLATED_SIZE_BYTES_MAX = 65_536;

/** True if the body may be small enough to be inflated on the event loop. */
export const mayInflateAtOnce = (bytes: Uint8Array): boolean =>
  bytes.length <= SMALL_SIZE_BYTES_MAX;

/**
 * Inflates a small body on the event loop. The limit of its output bounds the work on a small bomb.
 *
 * @returns `undefined` if it inflates to more than that.
 */
export function inflateAtOnce(
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  sizeBytesMax: number,
): Uint8Array | UninflatedBody | undefined {
  const maxOutputLength = Math.min(sizeBytesMax, SMALL_INFLATED_SIZE_BYTES_MAX);
  const options = { maxOutputLength, info: true };
  try {
    return wholeOf(inflatersAtOnce[formOf(bytes, encoding)](bytes, options), bytes, encoding);
  } catch (error) {
    return isTooLarge(error) ? undefined : invalid(error as Error, encoding);
  }
}

const isTooLarge = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE';

const wholeOf = (
  { buffer, engine }: Inflated,
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
): Uint8Array | UninflatedBody =>
  engine.bytesWritten === bytes.length
    ? buffer
    : { outcome: 'invalid-encoding', message: trailingBytes(encoding) };

const invalid = (error: Error, encoding: 'gzip' | 'deflate'): UninflatedBody => ({
  outcome: 'invalid-encoding',
  message: `the body is not valid ${encoding}: ${error.message}`,
});

/** zlib ignores this fault: the body is longer than its compressed data, and the rest is unknown. */
export const trailingBytes = (encoding: 'gzip' | 'deflate'): string =>
  `the body is not valid ${encoding}: bytes follow its end`;

/** A zlib stream begins with method 8 and a check that makes the first two bytes divisible by 31. */
export function isZlibWrapped(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/** As many bytes as are read of one that is not compressed (`exchange.ts`). */
const COUNTED_SIZE_BYTES_MAX = 16 * 1_048_576;

/** A piece takes a turn: 16 KB that inflate to 16 MB would have the event loop count for 50 ms. */
const COUNTED_PIECE_SIZE_BYTES = 512 * 1_024;

/** Counts the calls of a batch that is too large, in turns. Broken bytes end the count. */
async function countInflated(
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  nextTurn: NextTurn,
): Promise<number> {
  const options = { chunkSize: COUNTED_PIECE_SIZE_BYTES };
  const inflater =
    encoding === 'gzip'
      ? createGunzip(options)
      : isZlibWrapped(bytes)
        ? createInflate(options)
        : createInflateRaw(options);
  inflater.end(bytes);
  const counter = new CallCounter();
  let sizeBytes = 0;
  try {
    for await (const piece of inflater as AsyncIterable<Uint8Array>) {
      if ((await nextTurn()) === undefined) break;
      counter.add(piece);
      sizeBytes += piece.length;
      if (sizeBytes >= COUNTED_SIZE_BYTES_MAX) break;
    }
  } catch {
    // The calls up to here are known.
  }
  return counter.count;
}
