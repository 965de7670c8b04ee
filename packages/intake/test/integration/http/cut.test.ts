/** A sender that goes away, at any stage of any transport: the work ends, and the held capacity is free. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { deflateSync, gzipSync } from 'node:zlib';
import { connectProducer } from '@sluice/platform/redis/redis';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { expectUnharmed } from '../support/unharmed.ts';

const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let intake: IntakeUnderTest;
let redis: Awaited<ReturnType<typeof connectProducer>>;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
  redis = await connectProducer(testRedisUrl(), 60_000);
});
afterAll(async () => {
  redis.disconnect();
  await intake.close();
});

const line =
  '{"type":"track","userId":"ann","event":"Order Placed","properties":{"amount":42.5}}\n';
/** A megabyte of lines: many members of gzip behind each other are one body. */
const lines = Buffer.from(line.repeat(10_000));
const items = (count: number) => `{"batch":[${Array(count).fill(line.trim()).join(',')}]}`;

interface Transport {
  readonly name: string;
  readonly path: string;
  readonly encoding?: 'gzip' | 'deflate';
  readonly authorization?: string;
  readonly isChunked?: boolean;
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

const TRANSPORTS: readonly Transport[] = [
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
  // An answer of some megabytes, which the sender does not read.
  {
    name: 'a batch with a large answer',
    path: '/v1/batch',
    body: Buffer.from(`{"batch":[${Array(20_000).fill('{"type":"track"}').join(',')}]}`),
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

interface Cut {
  readonly transport: Transport;
  /** Of the request's bytes, from 0 to 1. */
  readonly sentShare: number;
  readonly waitMs: number;
  readonly isReset: boolean;
}

const cuts: fc.Arbitrary<Cut> = fc.record({
  transport: fc.constantFrom(...TRANSPORTS),
  sentShare: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  waitMs: fc.constantFrom(0, 1, 5, 20, 100),
  isReset: fc.boolean(),
});

/** Sends a part of a request, waits, and goes away. */
async function sendAndCut({ transport, sentShare, waitMs, isReset }: Cut): Promise<void> {
  const { path, encoding, authorization = PIPELINES_AUTHORIZATION, isChunked, body } = transport;
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    `Authorization: ${authorization}`,
    ...(encoding ? [`Content-Encoding: ${encoding}`] : []),
    isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`,
  ];
  const request = Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`),
    isChunked ? inChunks(body) : body,
  ]);
  const socket = connect(intake.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(request.subarray(0, Math.round(sentShare * request.length)));
  await sleep(waitMs);
  if (isReset) socket.resetAndDestroy();
  else socket.destroy();
}

/**
 * Bytes that are held, after a collection; the test keeps the operations that intake passed on, and they are not
 * counted.
 */
function heldSizeBytes(): number {
  (intake.operations as unknown[]).length = 0;
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Of the event loop, and of a core: the least of three windows. Continuing work is in each of them. The time for which
 * another process has the core counts as used by the event loop, and the collector's threads use a core without it.
 */
async function utilisation(): Promise<number> {
  let least = 1;
  for (let window = 0; window < 3; window++) {
    const before = performance.eventLoopUtilization();
    const cpuBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    await sleep(200);
    const { user, system } = process.cpuUsage(cpuBefore);
    const ofACore = (user + system) / 1_000 / (performance.now() - startedAtMs);
    least = Math.min(least, ofACore, performance.eventLoopUtilization(before).utilization);
  }
  return least;
}

const WINDOW_MS = 100;
const RELEASED_WITHIN_MS = 2_000;

/** Of the event loop, in a window with an answer of Redis: intake waits for it with the lines that it has taken. */
async function utilisationNow(): Promise<number> {
  const before = performance.eventLoopUtilization();
  await redis.ping();
  await sleep(WINDOW_MS);
  return performance.eventLoopUtilization(before).utilization;
}

/**
 * Within two seconds of its own time: the windows in which the consumers of this test, in the same process, take committed
 * operations are not intake's. A standstill of the machine is one window.
 */
async function expectReleased(before: number): Promise<void> {
  let isConsuming = true;
  for (let passedMs = 0; ; passedMs += isConsuming ? 0 : WINDOW_MS) {
    const used = await utilisationNow();
    isConsuming = intake.operations.length > 0;
    const state = { ...intake.held(), isUsed: used >= 0.05, isMore: false };
    state.isMore = heldSizeBytes() - before >= 16 * MEBIBYTE;
    if (passedMs >= RELEASED_WITHIN_MS || isDeepStrictEqual(state, RELEASED))
      return expect(state).toEqual(RELEASED);
  }
}

const NOTHING = {
  collectedSizeBytes: 0,
  unreadSizeBytes: 0,
  streamSizeBytes: 0,
  pendingSizeBytes: 0,
  places: 0,
  inFlight: 0,
};

const RELEASED = { ...NOTHING, isUsed: false, isMore: false };

/** Bytes go with their sockets, which end in a later turn of a busy machine; blocks, when the collector has swept them. */
const isReleased = (before: number) =>
  vi.waitFor(() => expect(heldSizeBytes() - before).toBeLessThan(16 * MEBIBYTE), {
    timeout: 20_000,
    interval: 100,
  });

/** No shared capacity is held: a small rest of each cut would end in 503 for everybody. */
const isIdle = () =>
  vi.waitFor(
    async () => {
      expect(await utilisation()).toBeLessThan(0.05);
      expect(intake.held()).toEqual(NOTHING);
    },
    { timeout: 60_000 },
  );

/** The consumers of this test have taken all that intake has committed: their work is not intake's. */
async function untilConsumed(): Promise<void> {
  let before = -1;
  await vi.waitFor(
    () => {
      const { length } = intake.operations;
      const isSame = length === before;
      before = length;
      expect(isSame).toBe(true);
    },
    { timeout: 30_000, interval: 300 },
  );
}

/** As many compressed bodies as are inflated at a time: each of their places is free. */
async function expectInflated(): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      fetch(`${intake.url}/v1/batch`, {
        method: 'POST',
        headers: { Authorization: PIPELINES_AUTHORIZATION, 'Content-Encoding': 'gzip' },
        body: gzipSync(items(10)),
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
}

test(
  'a call, a batch or a stream that is cut at any stage leaves no work and no memory',
  { timeout: 300_000 },
  async () => {
    const warmUp = TRANSPORTS.map((transport) =>
      sendAndCut({ transport, sentShare: 1, waitMs: 100, isReset: false }),
    );
    await Promise.all(warmUp);
    await isIdle();
    const before = heldSizeBytes();
    await fc.assert(
      fc.asyncProperty(fc.array(cuts, { minLength: 4, maxLength: 8 }), async (several) => {
        await Promise.all(several.map(sendAndCut));
      }),
      { numRuns: 20 },
    );
    await isIdle();
    await isReleased(before);
    await expectInflated();
    await expectUnharmed(intake);
  },
);

/** The long form, by hand: `CUT_RUNS=50 CUT_SEED=1`. */
const RUN_COUNT = Number(process.env['CUT_RUNS'] ?? 2);
const SEED = Number(process.env['CUT_SEED'] ?? 37);

test.each(TRANSPORTS)(
  '$name that is cut at any stage has released its CPU time and memory within 2 s',
  { timeout: 60_000 + RUN_COUNT * 10_000 },
  async (transport) => {
    // Its code and its buffers stay.
    await sendAndCut({ transport, sentShare: 1, waitMs: 100, isReset: false });
    await isIdle();
    const before = heldSizeBytes();
    await fc.assert(
      fc.asyncProperty(cuts, async (cut) => {
        await sendAndCut({ ...cut, transport });
        await expectReleased(before);
      }),
      {
        seed: SEED,
        numRuns: RUN_COUNT,
        endOnFailure: true,
        examples: [[{ transport, sentShare: 1, waitMs: 100, isReset: false }]],
      },
    );
  },
);

test.each(TRANSPORTS.filter(({ path }) => path === '/v1/stream'))(
  '$name that is cut after 0.3 s has released its CPU time and memory 2 s later',
  async (transport) => {
    await isIdle();
    const before = heldSizeBytes();
    const residentBefore = process.memoryUsage.rss();
    let residentPeak = residentBefore;
    const sampling = setInterval(() => {
      residentPeak = Math.max(residentPeak, process.memoryUsage.rss());
    }, 20);
    await sendAndCut({ transport, sentShare: 1, waitMs: 300, isReset: false });
    // In ticks with an answer of Redis each: intake waits for it with the lines that it has taken.
    await TickClock.pass(50, 1_500, async () => {
      await redis.ping();
      return false;
    });
    clearInterval(sampling);
    expect(intake.held()).toEqual(NOTHING);
    await untilConsumed();
    expect(await utilisation()).toBeLessThan(0.05);
    await isReleased(before);
    expect(residentPeak / residentBefore).toBeLessThan(1.5);
  },
  240_000,
);
