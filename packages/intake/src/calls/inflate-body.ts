/**
 * Inflates the bytes of a compressed body, on the thread pool.
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
  inflate,
  inflateRaw,
  type ZlibOptions,
} from 'node:zlib';
import { CallCounter } from './count-calls.ts';
import type { NextTurn, UninflatedBody } from './read-body.ts';

type Inflate = (
  bytes: Uint8Array,
  options: ZlibOptions,
) => Promise<{ buffer: Uint8Array; engine: { bytesWritten: number } }>;

/** With `info` they return how many bytes they read, which the types do not know. */
const inflaters = {
  gzip: promisify(gunzip) as unknown as Inflate,
  deflate: promisify(inflate) as unknown as Inflate,
  deflateRaw: promisify(inflateRaw) as unknown as Inflate,
};

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
  const form = encoding === 'deflate' && !isZlibWrapped(bytes) ? 'deflateRaw' : encoding;
  try {
    const { buffer, engine } = await inflaters[form](bytes, options);
    if (engine.bytesWritten === bytes.length) return buffer;
    return { outcome: 'invalid-encoding', message: trailingBytes(encoding) };
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE')
      return nextTurn === undefined
        ? { outcome: 'too-large' }
        : { outcome: 'too-large', callCount: await countInflated(bytes, encoding, nextTurn) };
    return {
      outcome: 'invalid-encoding',
      message: `the body is not valid ${encoding}: ${(error as Error).message}`,
    };
  }
}

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
