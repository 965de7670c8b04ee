/**
 * Senders of files, and readers of tails and feeds, that leave. At any stage the work ends, and its memory and places are
 * free.
 */
import { connect, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import type { TailLine } from '@sluice/domain/operations/tail';
import { lineTopic } from '@sluice/platform/tail/tail-messages';
import { sql } from 'kysely';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TailHub } from '../../../src/events/tail-hub.ts';
import { TailPlaces } from '../../../src/events/tail-places.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { FIELDS, form } from '../support/import-forms.ts';

const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A place that each cut left taken would end in 503 for everybody. */
const taking = vi.spyOn(TailPlaces.prototype, 'take');
const releasing = vi.spyOn(TailPlaces.prototype, 'release');
const takenPlaceCount = (): number =>
  taking.mock.settledResults.filter(({ value }) => value === true).length -
  releasing.mock.calls.length;

const listeners = new Map<string, (text: string) => void>();
let api: ApiUnderTest;
let hub: TailHub;
let port: number;
beforeAll(async () => {
  const channel = {
    messageSizeBytesMax: 64 * 1024,
    burstSizeBytesMax: 512 * 1024,
    publish: () => Promise.resolve(),
    listen: async (topic: string, onText: (text: string) => void) =>
      void listeners.set(topic, onText),
    unlisten: async (topic: string) => void listeners.delete(topic),
    close: () => Promise.resolve(),
  };
  hub = new TailHub({ channel, id: 'hub', logger: { warn: () => undefined } as never });
  api = await startApi({
    openTail: (environmentId, filter, onLines) => hub.open(environmentId, filter, onLines),
    tailDurationMsMax: 600_000,
  });
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
afterAll(() => api.close());

interface Transport {
  readonly name: string;
  readonly bytes: Buffer;
}
const headOf = (line: string, headers: Readonly<Record<string, string>>): string =>
  [
    `${line} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${api.a.key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');
async function upload(name: string, file: Buffer): Promise<Transport> {
  const { payload, headers } = await form(FIELDS, file);
  const sized = { ...headers, 'content-length': String(payload.length + 1) };
  // Its head announces more bytes, so that no part of it is ever whole.
  return { name, bytes: Buffer.concat([Buffer.from(headOf('POST /v1/imports', sized)), payload]) };
}
async function transports(): Promise<Transport[]> {
  const rows = Buffer.from(
    '_svc_name,_svc_customer_id\n' + 'bought,ann@example.com\n'.repeat(200_000),
  );
  return [
    await upload('a file', rows),
    await upload('a file in gzip', gzipSync(rows)),
    await upload('a small file', rows.subarray(0, 1_000)),
    { name: 'a tail', bytes: Buffer.from(headOf('GET /v1/stream', {})) },
    {
      name: 'a stream of a feed',
      bytes: Buffer.from(headOf('GET /v1/feeds/cut', { Accept: 'text/event-stream' })),
    },
    {
      name: 'a waiting page of a feed',
      bytes: Buffer.from(headOf('GET /v1/feeds/cut?wait=60', {})),
    },
  ];
}

interface Cut {
  readonly transport: Transport;
  /** Of the request's bytes, from 0 to 1. */
  readonly sentShare: number;
  readonly waitMs: number;
  /** The wait begins when it is over. Absent: at once. */
  readonly after?: Promise<unknown>;
  readonly isReset: boolean;
  /** Does not read its answer. */
  readonly isSlow: boolean;
}

const cutsOf = (among: readonly Transport[]): fc.Arbitrary<Cut> =>
  fc.record({
    transport: fc.constantFrom(...among),
    sentShare: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    waitMs: fc.constantFrom(0, 1, 5, 20, 100),
    isReset: fc.boolean(),
    isSlow: fc.boolean(),
  });

async function sendAndCut(cut: Cut): Promise<void> {
  const { transport, sentShare, waitMs, after, isReset, isSlow } = cut;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  if (!isSlow) socket.resume();
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(transport.bytes.subarray(0, Math.round(sentShare * transport.bytes.length)));
  await after;
  await sleep(waitMs);
  if (isReset) socket.resetAndDestroy();
  else socket.destroy();
}

const line: TailLine = {
  kind: 'received',
  at_ms: 1,
  outcome: 'accepted',
  name: 'x'.repeat(1_000),
  people: [{ email: 'ada@example.com' }],
  details: {},
};

/** Lines that readers of the tail get all the time. */
const tell = (): void => {
  const { environmentId } = api.a;
  const text = JSON.stringify({ lines: Array(20).fill(line), dropped: 0 });
  listeners.get(lineTopic(environmentId))?.(text);
};

async function heldSizeBytes(): Promise<number> {
  collectGarbage();
  await sleep(50);
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const keptCount = async (): Promise<number> => {
  const { rows } = await sql<{ count: string }>`
    select (select count(*) from imports) + (select count(*) from import_chunks) as count`.execute(
    api.database,
  );
  return Number(rows[0]?.count);
};

/** No connection, no reader, no stored row, and an idle event loop. */
const isIdle = () =>
  vi.waitFor(
    async () => {
      const connections = await new Promise<number>((resolve, reject) =>
        api.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      );
      expect(connections).toBe(0);
      expect(hub.readerCount(api.a.environmentId)).toBe(0);
      expect(takenPlaceCount()).toBe(0);
      expect(await keptCount()).toBe(0);
      const before = performance.eventLoopUtilization();
      await sleep(500);
      expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.05);
    },
    { timeout: 60_000, interval: 100 },
  );

const TRANSPORT_NAMES = [
  'a file',
  'a file in gzip',
  'a small file',
  'a tail',
  'a stream of a feed',
  'a waiting page of a feed',
];
/** The long form, by hand: `CUT_RUNS=50 CUT_SEED=1`. */
const RUN_COUNT = Number(process.env['CUT_RUNS'] ?? 2);
const SEED = Number(process.env['CUT_SEED'] ?? 37);
const WINDOW_MS = 100;
const RELEASED_WITHIN_MS = 2_000;
const RELEASED = { readers: 0, places: 0, rows: 0, isUsed: false, isMore: false };

/** Within two seconds of its own time: a standstill of the machine is one window. */
async function expectReleased(before: number): Promise<void> {
  for (let passedMs = 0; ; passedMs += WINDOW_MS) {
    const utilisationBefore = performance.eventLoopUtilization();
    await sleep(WINDOW_MS);
    const { utilization } = performance.eventLoopUtilization(utilisationBefore);
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    const state = {
      readers: hub.readerCount(api.a.environmentId),
      places: takenPlaceCount(),
      rows: await keptCount(),
      isUsed: utilization >= 0.05,
      isMore: heapUsed + external - before >= 16 * MEBIBYTE,
    };
    if (passedMs >= RELEASED_WITHIN_MS || isDeepStrictEqual(state, RELEASED))
      return expect(state).toEqual(RELEASED);
  }
}

test.each(TRANSPORT_NAMES)(
  '%s that is cut at any stage has released its CPU time, memory and rows within 2 s',
  { timeout: 120_000 + RUN_COUNT * 10_000 },
  async (wanted) => {
    const feed = { body: { events: ['customer_subscribed'] } };
    await api.call('PUT', '/v1/feeds/cut', feed);
    const transport = (await transports()).find(({ name }) => name === wanted)!;
    const whole: Cut = { transport, sentShare: 1, waitMs: 200, isReset: false, isSlow: false };
    // Its code and its buffers stay.
    await sendAndCut(whole);
    await isIdle();
    const before = await heldSizeBytes();
    await fc.assert(
      fc.asyncProperty(cutsOf([transport]), async (cut) => {
        const telling = setInterval(tell, 1);
        await sendAndCut(cut).finally(() => clearInterval(telling));
        await expectReleased(before);
      }),
      { seed: SEED, numRuns: RUN_COUNT, endOnFailure: true, examples: [[whole]] },
    );
  },
);

test(
  'a file or a tail that is cut at any stage leaves no work, no memory and no rows',
  { timeout: 240_000 },
  async () => {
    const feed = { body: { events: ['customer_subscribed'] } };
    expect((await api.call('PUT', '/v1/feeds/cut', feed)).statusCode).toBe(200);
    const all = await transports();
    const whole = { sentShare: 1, waitMs: 200, isReset: false, isSlow: false };
    // Cut before, they would leave code and buffers of this work to be counted below.
    const after = vi.waitFor(
      async () => {
        expect(hub.readerCount(api.a.environmentId)).toBe(1);
        expect(await keptCount()).toBeGreaterThan(0);
      },
      { timeout: 60_000, interval: 50 },
    );
    await Promise.all(all.map((transport) => sendAndCut({ ...whole, transport, after })));
    await isIdle();
    const before = await heldSizeBytes();
    const cuts = cutsOf(all);
    const telling = setInterval(tell, 1);
    await fc.assert(
      fc.asyncProperty(fc.array(cuts, { minLength: 4, maxLength: 8 }), async (several) => {
        await Promise.all(several.map(sendAndCut));
      }),
      { numRuns: 12 },
    );
    clearInterval(telling);
    await isIdle();
    // V8 may free memory in another thread, later.
    await vi.waitFor(
      async () => expect((await heldSizeBytes()) - before).toBeLessThan(16 * MEBIBYTE),
      { timeout: 60_000, interval: 100 },
    );
    const answer = await api.call('POST', '/v1/imports', await form(FIELDS, 'a,b\nc,d\n'));
    expect(answer.statusCode).toBe(200);
  },
);
