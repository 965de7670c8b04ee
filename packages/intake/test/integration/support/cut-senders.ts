/** Senders of every transport that go away at any stage. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { PIPELINES_AUTHORIZATION, TRACK_AUTHORIZATION } from './intake-under-test.ts';

const MEBIBYTE = 1_048_576;

const line =
  '{"type":"track","userId":"ann","event":"Order Placed","properties":{"amount":42.5}}\n';
/** A megabyte of lines: many members of gzip behind each other are one body. */
const lines = Buffer.from(line.repeat(10_000));
export const items = (count: number) => `{"batch":[${Array(count).fill(line.trim()).join(',')}]}`;

export interface Transport {
  readonly name: string;
  readonly path: string;
  readonly encoding?: 'gzip' | 'deflate';
  readonly authorization?: string;
  readonly isChunked?: boolean;
  readonly isStrict?: boolean;
  readonly body: Buffer;
}

/** More than the 4 MB of a batch. */
const tooLarge = Buffer.from(items(Math.ceil((6 * MEBIBYTE) / line.length)));
const CHUNK_SIZE_BYTES = 16_384;
const inChunks = (body: Buffer): Buffer =>
  Buffer.concat([
    ...Array.from({ length: Math.ceil(body.length / CHUNK_SIZE_BYTES) }, (_, index) => {
      const chunk = body.subarray(index * CHUNK_SIZE_BYTES, (index + 1) * CHUNK_SIZE_BYTES);
      return Buffer.concat([
        Buffer.from(`${chunk.length.toString(16)}\r\n`),
        chunk,
        Buffer.from('\r\n'),
      ]);
    }),
    Buffer.from('0\r\n\r\n'),
  ]);

export const TRANSPORTS: readonly Transport[] = [
  { name: 'a call', path: '/v1/track', body: Buffer.from(line) },
  { name: 'a call in gzip', path: '/v1/track', encoding: 'gzip', body: gzipSync(line) },
  { name: 'a batch', path: '/v1/batch', body: Buffer.from(items(2_000)) },
  { name: 'a batch in gzip', path: '/v1/batch', encoding: 'gzip', body: gzipSync(items(2_000)) },
  {
    name: 'a batch in deflate',
    path: '/v1/batch',
    encoding: 'deflate',
    body: deflateSync(items(2_000)),
  },
  {
    name: 'a batch of the Track API',
    path: '/api/v2/batch',
    authorization: TRACK_AUTHORIZATION,
    encoding: 'gzip',
    body: gzipSync(
      JSON.stringify({
        batch: Array(2_000).fill({
          type: 'person',
          action: 'event',
          identifiers: { id: 'tom' },
          name: 'e',
        }),
      }),
    ),
  },
  {
    name: 'a batch in chunks',
    path: '/v1/batch',
    isChunked: true,
    body: Buffer.from(items(2_000)),
  },
  // An answer of 300 KB, which the sender does not read. In permissive mode it is empty, and more items have one fault.
  {
    name: 'a batch with a large answer',
    path: '/v1/batch',
    isStrict: true,
    body: Buffer.from(`{"batch":[${Array(2_500).fill('{"type":"track"}').join(',')}]}`),
  },
  { name: 'a batch that is too large', path: '/v1/batch', body: tooLarge },
  {
    name: 'a batch in chunks that is too large',
    path: '/v1/batch',
    isChunked: true,
    body: tooLarge,
  },
  {
    name: 'a batch in gzip that is too large',
    path: '/v1/batch',
    encoding: 'gzip',
    body: gzipSync(tooLarge),
  },
  { name: 'a stream', path: '/v1/stream', body: Buffer.concat(Array(4).fill(lines)) },
  {
    name: 'a stream in gzip',
    path: '/v1/stream',
    encoding: 'gzip',
    body: Buffer.concat(Array(100).fill(gzipSync(lines))),
  },
  {
    name: 'a stream in deflate',
    path: '/v1/stream',
    encoding: 'deflate',
    body: deflateSync(Buffer.concat(Array(10).fill(lines))),
  },
  {
    name: 'a stream of blank lines',
    path: '/v1/stream',
    encoding: 'gzip',
    body: gzipSync(Buffer.alloc(64 * MEBIBYTE, 0x0a)),
  },
  {
    name: 'a stream of nested arrays',
    path: '/v1/stream',
    encoding: 'gzip',
    body: gzipSync(Buffer.alloc(64 * MEBIBYTE, '[')),
  },
  {
    name: 'a stream of bad lines',
    path: '/v1/stream',
    encoding: 'gzip',
    body: gzipSync(Buffer.alloc(8 * MEBIBYTE, 'x\n')),
  },
];

export interface Cut {
  readonly transport: Transport;
  /** Of the request's bytes, from 0 to 1. */
  readonly sentShare: number;
  readonly waitMs: number;
  readonly isReset: boolean;
}

export const cuts: fc.Arbitrary<Cut> = fc.record({
  transport: fc.constantFrom(...TRANSPORTS),
  sentShare: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  waitMs: fc.constantFrom(0, 1, 5, 20, 100),
  isReset: fc.boolean(),
});

/** Sends a part of a request, waits, and goes away. */
export async function sendAndCut(
  port: number,
  { transport, sentShare, waitMs, isReset }: Cut,
): Promise<void> {
  const { path, encoding, isChunked, isStrict, body } = transport;
  const { authorization = PIPELINES_AUTHORIZATION } = transport;
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    `Authorization: ${authorization}`,
    ...(encoding ? [`Content-Encoding: ${encoding}`] : []),
    ...(isStrict ? ['X-Strict-Mode: 1'] : []),
    isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`,
  ];
  const request = Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`),
    isChunked ? inChunks(body) : body,
  ]);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(request.subarray(0, Math.round(sentShare * request.length)));
  await sleep(waitMs);
  if (isReset) socket.resetAndDestroy();
  else socket.destroy();
}
