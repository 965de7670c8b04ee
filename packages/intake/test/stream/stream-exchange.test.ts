/** One stream on a simulated socket. Its sender reads no answers, is stopped or goes away. */
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { expect, onTestFinished, test, vi } from 'vitest';
import { capacityOfOne } from '../support/capacity-of-one.ts';
import { MEBIBYTE, openStream, writeKey } from '../support/simulated-streams.ts';

/** Small, and the longest answer that does not fill a group. */
const BAD_LINES = new Uint8Array(Buffer.from('x\n'.repeat(99)));

/** Sends small pieces, each after the answer to the one before, for as long as the stream takes them; 100 at most. */
async function sendPieces(stream: ReturnType<typeof openStream>): Promise<number> {
  const lineBefore = stream.answers().at(-1)?.line ?? 0;
  for (let sentCount = 0; sentCount < 100;) {
    stream.push(BAD_LINES);
    sentCount++;
    const line = lineBefore + sentCount * 99;
    await vi.waitFor(() => expect(stream.answers().at(-1)?.line).toBe(line), {
      timeout: 30_000,
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
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 30_000);
  expect(await sendPieces(stream)).toBe(100);
});

test('a stop ends a stream whose sender reads no answers', async () => {
  const stream = openStream();
  stream.stopReading();
  const sentCount = await sendPieces(stream);
  stream.stop();
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('stopping'), 30_000);
  expect(stream.answers().at(-1)?.line).toBe(sentCount * 99);
});

test('a stream whose sender reads no answers and goes away gives back its place', async () => {
  const places = capacityOfOne(4);
  const stream = openStream({ places });
  stream.stopReading();
  expect(await sendPieces(stream)).toBeLessThan(5);
  expect(places.totalSize).toBe(1);
  stream.abort();
  await vi.waitFor(() => expect(places.totalSize).toBe(0), 30_000);
});

test('a stream whose sender takes no bytes of its answers for half a minute is cut', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const places = capacityOfOne(4);
  const stream = openStream({ places });
  stream.stopReading();
  expect(await sendPieces(stream)).toBeLessThan(5);
  vi.advanceTimersByTime(28_000);
  expect(stream.isEnded()).toBe(false);
  // It takes some, and then stops again.
  stream.read();
  for (let n = 0; n < 20; n++) await turn();
  stream.stopReading();
  expect(await sendPieces(stream)).toBeLessThan(5);
  vi.advanceTimersByTime(28_000);
  expect(stream.isEnded()).toBe(false);
  vi.advanceTimersByTime(12_000);
  expect(stream.isEnded()).toBe(true);
  for (let n = 0; n < 20 && places.totalSize > 0; n++) await turn();
  expect(places.totalSize).toBe(0);
});

test('bytes after the last answer are dropped as they come, not kept', async () => {
  const stream = openStream({ strictMode: '1' });
  stream.push(BAD_LINES);
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('rejected'), 30_000);
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 30_000);
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
  await vi.waitFor(() => expect(stream.isEnded()).toBe(true), 30_000);
});

test('a workspace leaves a share of the places to the others, once there are others', async () => {
  const alone = capacityOfOne(4);
  const streams = Array.from({ length: 5 }, () => openStream({ places: alone }));
  expect(alone.totalSize).toBe(4);
  for (const stream of streams) stream.abort();
  await vi.waitFor(() => expect(alone.totalSize).toBe(0), 30_000);
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

/** A part of a body in gzip. Its lines are taken, and the end of its compressed data is missing. */
const PART_IN_GZIP = new Uint8Array(
  gzipSync(Buffer.from('{"type":"page","userId":"a"}\n'.repeat(1_000))),
).slice(0, -10);

test.each<[string, number, (stream: ReturnType<typeof openStream>) => void, string | undefined]>([
  ['is cut', 60_000, (stream) => stream.abort(), undefined],
  ['meets a stop', 60_000, (stream) => stream.stop(), 'stopping'],
  ['brings no bytes for too long', 200, () => undefined, 'idle'],
])(
  'a stream in gzip that %s before its end has no issue of its encoding',
  async (_, idleTimeoutMs, interrupt, end) => {
    const places = capacityOfOne(4);
    const stream = openStream({ contentEncoding: 'gzip', idleTimeoutMs, places });
    stream.push(PART_IN_GZIP.slice());
    for (let n = 0; n < 20; n++) await turn();
    interrupt(stream);
    if (end !== undefined)
      await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe(end), 30_000);
    // The sender goes away: a stream that ended earlier reads its rest for a while.
    stream.abort();
    await vi.waitFor(() => expect(places.totalSize).toBe(0), 30_000);
    expect(stream.issueCodes).toEqual([]);
  },
);

test('a stream whose bytes are no gzip has an issue of its encoding', async () => {
  const stream = openStream({ contentEncoding: 'gzip' });
  stream.push(new Uint8Array(Buffer.from('not gzip')), true);
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('invalid_encoding'), 30_000);
  expect(stream.issueCodes).toEqual(['invalid_encoding']);
});
