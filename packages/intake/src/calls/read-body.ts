/**
 * Body bytes → JSON value (step 1): inflates under a cap, insists on UTF-8, parses.
 *
 * Plain bodies are read in the same turn, straight from the socket's buffer. Compressed ones are
 * inflated on the thread pool, and never past the size limit: a 1 MB bomb of 1 GB costs the limit.
 *
 * Before: `exchange.ts` has collected the bytes, `inflate-in-turn.ts` says when a compressed one is inflated. After: `accept.ts`.
 */
import { promisify } from 'node:util';
import { gunzip, inflate, inflateRaw, type ZlibOptions } from 'node:zlib';

export type Body =
  | {
      readonly outcome: 'read';
      readonly value: unknown;
      readonly sizeBytes: number;
      readonly hasEscapes: boolean;
    }
  | { readonly outcome: 'too-large' }
  | { readonly outcome: 'invalid-encoding'; readonly message: string }
  | { readonly outcome: 'invalid-json'; readonly message: string };

/** What cannot be inflated, or must not. */
export type UninflatedBody = Extract<Body, { outcome: 'too-large' | 'invalid-encoding' }>;

export type ContentEncoding = 'identity' | 'gzip' | 'deflate' | 'unsupported';

/**
 * `Content-Encoding` as sent, a list in which empty members and `identity` say nothing (RFC 9110 §8.4); several codings at
 * once are not supported.
 */
export function readContentEncoding(header: string): ContentEncoding {
  if (header === '') return 'identity';
  const codings = header
    .split(',')
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== '' && member !== 'identity');
  const [coding, another] = codings;
  if (coding === undefined) return 'identity';
  if (another !== undefined) return 'unsupported';
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    default:
      return 'unsupported';
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a body that is not compressed. An empty one reads as `undefined`: some calls have none. */
export function readBody(bytes: Uint8Array): Body {
  const sizeBytes = bytes.byteLength;
  if (sizeBytes === 0) return { outcome: 'read', value: undefined, sizeBytes, hasEscapes: false };
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { outcome: 'invalid-json', message: 'the body is not valid UTF-8' };
  }
  try {
    return {
      outcome: 'read',
      value: JSON.parse(text),
      sizeBytes,
      hasEscapes: text.includes('\\u'),
    };
  } catch (error) {
    return {
      outcome: 'invalid-json',
      message: `the body is not valid JSON: ${jsonProblem(error)}`,
    };
  }
}

type Inflate = (
  bytes: Uint8Array,
  options: ZlibOptions,
) => Promise<{ buffer: Uint8Array; engine: { bytesWritten: number } }>;

/** With `info` they tell how many bytes they read, which the types do not know. */
const inflaters = {
  gzip: promisify(gunzip) as unknown as Inflate,
  deflate: promisify(inflate) as unknown as Inflate,
  deflateRaw: promisify(inflateRaw) as unknown as Inflate,
};

/** Inflates at most `sizeBytesMax` bytes. `deflate` is taken with and without the zlib wrapper: clients send both. */
export async function inflateBody(
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  sizeBytesMax: number,
): Promise<Uint8Array | UninflatedBody> {
  const options = { maxOutputLength: sizeBytesMax, info: true };
  const form = encoding === 'deflate' && !isZlibWrapped(bytes) ? 'deflateRaw' : encoding;
  try {
    const { buffer, engine } = await inflaters[form](bytes, options);
    if (engine.bytesWritten === bytes.length) return buffer;
    return { outcome: 'invalid-encoding', message: trailingBytes(encoding) };
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE')
      return { outcome: 'too-large' };
    return {
      outcome: 'invalid-encoding',
      message: `the body is not valid ${encoding}: ${(error as Error).message}`,
    };
  }
}

/** What zlib passes over: the body is longer than what was compressed, and nobody knows what the rest was. */
export const trailingBytes = (encoding: 'gzip' | 'deflate'): string =>
  `the body is not valid ${encoding}: bytes follow its end`;

/** A zlib stream begins with method 8 and a check that makes the first two bytes divisible by 31. */
export function isZlibWrapped(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/** V8 quotes the text around the fault; the quote may hold personal data, the place is enough. */
function jsonProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const place = /at position (\d+)/.exec(message);
  if (place) return `a fault at position ${place[1]}`;
  return message.startsWith('Unexpected end') ? 'it ends too early' : 'it cannot be parsed';
}
