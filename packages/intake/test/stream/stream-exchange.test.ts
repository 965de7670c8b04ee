/** One stream on a simulated socket: its memory and its ends. */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import { FairQueue } from '../../src/http/fair-queue.ts';
import { Head } from '../../src/http/request-head.ts';
import { capacityOfOne } from '../support/capacity-of-one.ts';
import { CommitSlots } from '../../src/stream/commit-slots.ts';
import { HeldBytes } from '../../src/stream/held-bytes.ts';
import { StreamPace } from '../../src/stream/stream-pace.ts';
import { RequestTurns } from '../../src/http/answer.ts';
import { BodyReads } from '../../src/body/body-reads.ts';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';
import { DemoGate } from '../../src/auth/demo-gate.ts';
import { Turns } from '../../src/http/turns.ts';
import { StreamExchange } from '../../src/stream/stream-exchange.ts';

const MEBIBYTE = 1_048_576;
/** Small, and the longest answer that does not fill a group. */
const BAD_LINES = new Uint8Array(Buffer.from('x\n'.repeat(99)));

const opened: { abort(): void }[] = [];
afterEach(() => {
  for (const stream of opened.splice(0)) stream.abort();
});

const writeKey = (environmentId: number) => ({
  kind: 'pipelines' as const,
  siteId: null,
  secretHash: createHash('sha256').update('write-key').digest(),
  environmentId,
  accountId: '1',
  phoneIdentifies: false,
  testCredentialId: null,
});

/** A stream with a write key of workspace 1. Its sender reads unless the test stops it. */
function openStream(
  given: {
    strictMode?: string;
    places?: SharedCapacity;
    held?: HeldBytes;
    keys?: readonly ReturnType<typeof writeKey>[];
  } = {},
) {
  let hasCapacity = true;
  let isPaused = false;
  let isEnded = false;
  let text = '';
  let abort: () => void = () => undefined;
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  let drain: () => boolean = () => true;
  const refused: (number | undefined)[] = [];
  let committedCount = 0;
  const keys = new KeyRing();
  keys.replace(given.keys ?? [writeKey(1)]);
  const turns = new Turns(() => performance.now());
  const state: ServerState = {
    isStopping: false,
    inFlightCount: 0,
    receivedCount: 0,
    heldCount: 0,
    refusedCounts: new Map(),
    collected: capacityOfOne(MEBIBYTE),
    inflations: { runningCount: 0, waiting: new FairQueue() },
    streams: new Set(),
    turns,
    demoGate: new DemoGate([]),
    repeatedKeys: new RepeatedKeyLooks(() => performance.now()),
    bodyReads: new BodyReads(() => performance.now()),
    requestTurns: new RequestTurns(),
    ownerOf: () => 1,
  };
  const batcher = new Batcher({
    shardCount: 1,
    commit: (commitBatches) => {
      committedCount += commitBatches.length;
      return Promise.resolve('broker');
    },
    newId: () => 'id',
    pending: capacityOfOne(MEBIBYTE),
    onCommitFailure: () => undefined,
  });
  const res = {
    onAborted: (handler: () => void) => (abort = handler),
    onData: (handler: typeof receive) => (receive = handler),
    onWritable: (handler: () => boolean) => (drain = handler),
    cork: (write: () => void) => write(),
    writeStatus: () => undefined,
    writeHeader: () => undefined,
    write: (part: string) => {
      text += part;
      return hasCapacity;
    },
    end: () => (isEnded = true),
    close() {
      isEnded = true;
      abort();
    },
    pause: () => void (isPaused = true),
    resume: () => void (isPaused = false),
  };
  const head = new Head();
  head.authorization = `Basic ${Buffer.from('write-key:').toString('base64')}`;
  head.strictMode = given.strictMode ?? '';
  const options = {
    keys,
    batcher,
    recordUnauthorized: (_: string, environmentId?: number) => void refused.push(environmentId),
    retryAfterSeconds: () => 1,
    rateLimiter: undefined,
    now: Date.now,
    newId: () => 'id',
    turns,
    monotonicNow: () => performance.now(),
    // These pauses belong to the linger. They last until the sender has sent its last byte.
    pause: () => new Promise(() => undefined),
    commitSlots: new CommitSlots(turns),
    waitingSlots: new CommitSlots(turns),
    places: given.places ?? capacityOfOne(4),
    held: given.held ?? new HeldBytes(() => performance.now()),
    emptyInputPace: new StreamPace(() => performance.now()),
    idleTimeoutMs: 60_000,
  };
  const query = { id: undefined, line: undefined };
  new StreamExchange(res, head, query, state, options, undefined).receive(undefined);
  const stream = {
    keys,
    refused,
    committedCount: () => committedCount,
    isPaused: () => isPaused,
    isEnded: () => isEnded,
    answers: () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { line: number; end?: string }),
    push: (bytes: Uint8Array<ArrayBuffer>, isLast = false) => receive(bytes.buffer, isLast),
    stopReading: () => (hasCapacity = false),
    read() {
      hasCapacity = true;
      drain();
    },
    stop: () => {
      for (const handle of state.streams) handle.stop();
    },
    abort: () => abort(),
  };
  opened.push(stream);
  return stream;
}

const event = (name: string) =>
  new Uint8Array(Buffer.from(`${JSON.stringify({ type: 'track', userId: 'ann', event: name })}\n`));

/** Sends small pieces, each after the answer to the one before, for as long as the stream takes them; 100 at most. */
async function sendPieces(stream: ReturnType<typeof openStream>): Promise<number> {
  const lineBefore = stream.answers().at(-1)?.line ?? 0;
  for (let sentCount = 0; sentCount < 100;) {
    stream.push(BAD_LINES);
    sentCount++;
    const line = lineBefore + sentCount * 99;
    await vi.waitFor(() => expect(stream.answers().at(-1)?.line).toBe(line), {
      timeout: 10_000,
      interval: 1,
    });
    for (let turns = 0; turns < 10 && stream.isPaused(); turns++) await turn();
    if (stream.isPaused()) return sentCount;
  }
  return 100;
}

test('a sender of small pieces that reads no answers is not read, until it reads', async () => {
  const stream = openStream();
  stream.stopReading();
  expect(await sendPieces(stream)).toBeLessThan(5);
  const toldCount = stream.answers().length;
  expect(toldCount).toBeLessThan(5);
  stream.read();
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 5_000);
  expect(await sendPieces(stream)).toBe(100);
});

/** Bounds of a fifth of a megabyte each, and pieces of one line without an end, of a tenth. */
const SMALL_BOUNDS = {
  cutAboveSizeBytes: 500_000,
  readBelowSizeBytes: 200_000,
  readAheadBelowSizeBytes: 100_000,
};
const PIECE = new Uint8Array(100_000).fill(0x20);

// uWebSockets.js reads on after a pause, for as long as a sender fills its buffer.
test('of streams that bring more than may be held, the one that holds most is cut', async () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const places = capacityOfOne(4);
  const honest = openStream({ held, places });
  const flood = openStream({ held, places });
  for (let n = 0; n < 3; n++) flood.push(PIECE.slice());
  for (let n = 0; n < 2; n++) honest.push(PIECE.slice());
  expect([honest.isEnded(), flood.isEnded()]).toEqual([false, false]);
  // The last piece of the honest one is one too many.
  honest.push(PIECE.slice(), true);
  expect([honest.isEnded(), flood.isEnded()]).toEqual([false, true]);
  expect(held.totalSizeBytes).toBe(300_000);
  await vi.waitFor(() => expect(honest.answers().at(-1)?.end).toBe('complete'), 10_000);
  expect(honest.answers().at(-1)?.line).toBe(1);
  await vi.waitFor(() => expect(places.totalSize).toBe(0), 10_000);
  expect(held.totalSizeBytes).toBe(0);
});

test('a stream alone that brings more than may be held is cut', async () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const flood = openStream({ held });
  for (let n = 0; n < 6; n++) flood.push(PIECE.slice());
  expect(flood.isEnded()).toBe(true);
  expect(held.totalSizeBytes).toBe(0);
});

test('while one stream fills the memory the others are not read, and are read again once it is taken', async () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const first = openStream({ held });
  const others = [openStream({ held }), openStream({ held })];
  first.push(PIECE.slice());
  expect(others.map((other) => other.isPaused())).toEqual([false, false]);
  first.push(PIECE.slice());
  expect(others.map((other) => other.isPaused())).toEqual([true, true]);
  await vi.waitFor(() => expect(held.totalSizeBytes).toBe(0), 10_000);
  await vi.waitFor(
    () => expect([first, ...others].map((each) => each.isPaused())).toEqual([false, false, false]),
    10_000,
  );
});

test('a sender of small chunks is read on while its lines are taken, up to a bound', async () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const stream = openStream({ held });
  stream.stopReading();
  const lines = new Uint8Array(Buffer.from('{"type":"page","userId":"a"}\n'.repeat(7)));
  const pushMany = async (): Promise<void> => {
    for (let n = 0; n < 100; n++) stream.push(lines.slice());
    expect(stream.isPaused()).toBe(true);
    await turn();
  };
  await pushMany();
  expect(stream.isPaused()).toBe(false);
  // 20 KB each time, of which some are taken.
  for (let n = 0; n < 20 && !stream.isPaused(); n++) await pushMany();
  for (let n = 0; n < 10; n++) await turn();
  expect(stream.isPaused()).toBe(true);
  expect(held.totalSizeBytes).toBeGreaterThan(80_000);
  stream.read();
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 10_000);
});

test('a stream is read although others hold all memory, if those are hardly taken for 3 s', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let nowMs = 0;
  const held = new HeldBytes(() => nowMs, SMALL_BOUNDS);
  const told: string[] = [];
  const open = (name: string) =>
    held.open({
      read: () => void told.push(`${name} read`),
      holdBack: () => void told.push(`${name} held back`),
      cut: () => void told.push(`${name} cut`),
    });
  const slow = open('slow');
  const waiting = open('waiting');
  slow.take(200_000);
  waiting.ask();
  for (; nowMs < 2_900; nowMs += 100) vi.advanceTimersByTime(100);
  expect(told).toEqual(['waiting held back']);
  for (; nowMs < 4_100; nowMs += 100) vi.advanceTimersByTime(100);
  expect(told).toEqual(['waiting held back', 'waiting read']);
});

test.each([
  ['refused at once', { keys: [] }],
  ['ended in strict mode, with bytes behind the bad line', { strictMode: '1' }],
])('a stream that is %s holds no bytes', async (_, given) => {
  const held = new HeldBytes(() => performance.now());
  const stream = openStream({ held, ...given });
  stream.push(new Uint8Array(Buffer.from('x\n')));
  stream.push(new Uint8Array(100_000).fill(0x20), true);
  await vi.waitFor(() => expect(stream.isEnded()).toBe(true), 5_000);
  expect(held.totalSizeBytes).toBe(0);
});

test('a stop ends a stream whose sender reads no answers', async () => {
  const stream = openStream();
  stream.stopReading();
  const sentCount = await sendPieces(stream);
  stream.stop();
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('stopping'), 5_000);
  expect(stream.answers().at(-1)?.line).toBe(sentCount * 99);
});

test('a stream whose sender reads no answers and goes away gives back its place', async () => {
  const places = capacityOfOne(4);
  const stream = openStream({ places });
  stream.stopReading();
  expect(await sendPieces(stream)).toBeLessThan(5);
  expect(places.totalSize).toBe(1);
  stream.abort();
  await vi.waitFor(() => expect(places.totalSize).toBe(0), 10_000);
});

test('bytes after the last answer are dropped as they come, not kept', async () => {
  const stream = openStream({ strictMode: '1' });
  stream.push(BAD_LINES);
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('rejected'), 5_000);
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 5_000);
  const before = process.memoryUsage().arrayBuffers;
  const piece = new Uint8Array(64 * 1024);
  for (let sent = 0; sent < 64 * MEBIBYTE; sent += piece.length) {
    stream.push(piece);
    expect(stream.isPaused()).toBe(false);
    // More in one turn of the event loop, and the connection is cut.
    if (sent % (4 * MEBIBYTE) === 0) await turn();
  }
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * MEBIBYTE);
  expect(stream.isEnded()).toBe(false);
  stream.push(piece, true);
  await vi.waitFor(() => expect(stream.isEnded()).toBe(true), 5_000);
});

test.each([
  ['revoked', []],
  ['given to another workspace', [writeKey(2)]],
  ['to be tested first', [{ ...writeKey(1), testCredentialId: '1' }]],
])(
  'a stream whose key is %s ends, and only its acknowledged lines are taken',
  async (_, keysThen) => {
    const stream = openStream();
    stream.push(event('before'));
    await vi.waitFor(() => expect(stream.answers()).toEqual([{ line: 1 }]), 5_000);
    expect(stream.committedCount()).toBe(1);
    stream.keys.replace(keysThen);
    stream.push(event('after'));
    await vi.waitFor(
      () => expect(stream.answers().at(-1)).toMatchObject({ line: 1, end: 'unauthorized' }),
      5_000,
    );
    expect(stream.committedCount()).toBe(1);
    expect(stream.refused).toEqual([1]);
  },
);

test('a stream whose key is revoked while a group is under way ends after that is acknowledged', async () => {
  const stream = openStream();
  stream.push(event('under way'));
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 5_000);
  stream.push(event('after'));
  stream.keys.replace([]);
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('unauthorized'), 5_000);
  expect(stream.answers().at(-1)?.line).toBe(stream.committedCount());
});

test('a stream goes on if other keys change and its own does not', async () => {
  const stream = openStream();
  stream.push(event('before'));
  await vi.waitFor(() => expect(stream.answers()).toEqual([{ line: 1 }]), 5_000);
  stream.keys.replace([{ ...writeKey(2), secretHash: Buffer.from('other') }, writeKey(1)]);
  stream.push(event('after'), true);
  await vi.waitFor(
    () => expect(stream.answers().at(-1)).toMatchObject({ line: 2, end: 'complete' }),
    5_000,
  );
});

test('a workspace leaves a share of the places to the others, once there are others', async () => {
  const alone = capacityOfOne(4);
  const streams = Array.from({ length: 5 }, () => openStream({ places: alone }));
  expect(alone.totalSize).toBe(4);
  for (const stream of streams) stream.abort();
  await vi.waitFor(() => expect(alone.totalSize).toBe(0), 5_000);
  const places = new SharedCapacity({
    capacity: 4,
    sharePercent: 25,
    isAlone: () => false,
    monotonicNow: () => 0,
  });
  for (let n = 0; n < 4; n++) openStream({ places });
  // Its share is one of four, and the fourth place is for the other.
  expect(places.heldBy(1)).toBe(3);
  openStream({ places, keys: [writeKey(2)] });
  expect(places.heldBy(2)).toBe(1);
});
