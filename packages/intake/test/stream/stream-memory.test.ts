/** Bytes of streams that intake holds: bounds of one and of all, and the streams that are cut or wait. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { capacityOfOne } from '../support/capacity-of-one.ts';
import { HeldBytes } from '../../src/stream/held-bytes.ts';
import { openStream } from '../support/simulated-streams.ts';

/** Bounds of a fifth of a megabyte each, and pieces of one line without an end, of a tenth. */
const SMALL_BOUNDS = {
  cutAboveSizeBytes: 500_000,
  readShareBelowSizeBytes: 450_000,
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
  await vi.waitFor(() => expect(honest.answers().at(-1)?.end).toBe('complete'), 30_000);
  expect(honest.answers().at(-1)?.line).toBe(1);
  await vi.waitFor(() => expect(places.totalSize).toBe(0), 30_000);
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
  await vi.waitFor(() => expect(held.totalSizeBytes).toBe(0), 30_000);
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
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 30_000);
});

test('a stream is read although others hold all memory, if those are hardly taken for 3 s', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let nowMs = 0;
  const held = new HeldBytes(() => nowMs, SMALL_BOUNDS);
  const told: string[] = [];
  const open = (name: string) =>
    held.open(1, {
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

const reading = (name: string, told: string[]) => ({
  read: () => void told.push(`${name} read`),
  holdBack: () => void told.push(`${name} held back`),
  cut: () => void told.push(`${name} cut`),
});

test('a stream of a workspace below its share is read although another workspace fills the memory', () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const told: string[] = [];
  const hostile = Array.from({ length: 20 }, (_, n) => held.open(1, reading(`hostile ${n}`, told)));
  for (const stream of hostile) stream.take(20_000);
  for (const stream of hostile) stream.ask();
  told.length = 0;
  const honest = held.open(2, reading('honest', told));
  honest.ask();
  expect(told).toEqual(['honest read']);
  // A quarter of 200,000 bytes is its share: beyond it, it waits its turn.
  honest.take(50_000);
  honest.release(10_000);
  honest.ask();
  expect(told).toEqual(['honest read', 'honest read']);
  honest.take(10_000);
  honest.ask();
  expect(told).toHaveLength(2);
  for (const stream of hostile) stream.release(20_000);
  expect(told.indexOf('honest read', 2)).toBeLessThanOrEqual(3);
});

test('of many workspaces with a fast stream each, each stream goes on without a cut', () => {
  const held = new HeldBytes(() => 0);
  const socketSizeBytes = 512 * 1_024;
  const readable = new Set<number>();
  const sizes = Array.from({ length: 20 }, () => 0);
  const takenSizes = sizes.map(() => 0);
  let cutCount = 0;
  const streams = sizes.map((_, n) => {
    readable.add(n);
    return held.open(n + 1, {
      read: () => void readable.add(n),
      holdBack() {
        readable.delete(n);
        if (sizes[n] === 0) streams[n]?.ask();
      },
      cut() {
        cutCount++;
        streams[n]?.release(sizes[n] ?? 0);
        sizes[n] = 0;
        streams[n]?.ask();
      },
    });
  });
  let mostSizeBytes = 0;
  for (let iteration = 0; iteration < 2_000; iteration++) {
    // The kernel keeps 4 MB of each connection, and one read brings them all.
    for (const n of [...readable]) {
      // It may be held back meanwhile.
      if (!readable.delete(n)) continue;
      for (let part = 0; part < 8; part++) {
        if (!streams[n]?.take(socketSizeBytes)) cutCount++;
        else sizes[n] = (sizes[n] ?? 0) + socketSizeBytes;
      }
      mostSizeBytes = Math.max(mostSizeBytes, held.totalSizeBytes);
    }
    for (const [n, sizeBytes] of sizes.entries()) {
      if (sizeBytes === 0 || (n + iteration) % 4 > 0) continue;
      sizes[n] = sizeBytes - socketSizeBytes;
      takenSizes[n] = (takenSizes[n] ?? 0) + socketSizeBytes;
      streams[n]?.release(socketSizeBytes);
      if (sizes[n] === 0) streams[n]?.ask();
    }
  }
  expect(cutCount).toBe(0);
  expect(mostSizeBytes).toBeLessThan(40 * 1_048_576);
  expect(Math.min(...takenSizes)).toBeGreaterThan(Math.max(...takenSizes) / 2);
});

test('of many streams of one workspace and a larger one of another, one of the many is cut', () => {
  const held = new HeldBytes(() => 0, SMALL_BOUNDS);
  const told: string[] = [];
  const honest = held.open(2, reading('honest', told));
  honest.take(100_000);
  const hostile = Array.from({ length: 6 }, (_, n) => {
    const stream = held.open(1, {
      ...reading(`hostile ${n}`, told),
      cut() {
        told.push(`hostile ${n} cut`);
        stream.release(60_000 + n);
      },
    });
    stream.take(60_000 + n);
    return stream;
  });
  expect(hostile[0]?.take(60_000)).toBe(true);
  expect(told.filter((event) => event.endsWith('cut'))).toEqual(['hostile 5 cut']);
  expect(honest.take(60_000)).toBe(true);
  expect(told).not.toContain('honest cut');
  expect(told).toContain('hostile 0 cut');
});

test.each([
  ['refused at once', { keys: [] }],
  ['ended in strict mode, with bytes behind the bad line', { strictMode: '1' }],
])('a stream that is %s holds no bytes', async (_, given) => {
  const held = new HeldBytes(() => performance.now());
  const stream = openStream({ held, ...given });
  stream.push(new Uint8Array(Buffer.from('x\n')));
  stream.push(new Uint8Array(100_000).fill(0x20), true);
  await vi.waitFor(() => expect(stream.isEnded()).toBe(true), 30_000);
  expect(held.totalSizeBytes).toBe(0);
});
