import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setImmediate as iteration } from 'node:timers/promises';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { HeldBytes } from '../../src/stream/held-bytes.ts';
import { InflationRatioExceeded, inflated, StreamBytes } from '../../src/stream/stream-bytes.ts';

/** All pieces may be read at once. */
const AT_ONCE = (): Promise<void> => Promise.resolve();

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
] as const)(
  '%s is inflated for any cuts of its pieces, also after the first byte',
  async (encoding, compress) => {
    const text = 'a line\n'.repeat(100);
    const bytes = compress(text);
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
        const ends = [...places.toSorted((one, other) => one - other), bytes.length];
        for (const [index, end] of ends.entries())
          pieces.push(bytes.subarray(ends[index - 1] ?? 0, end), end === bytes.length);
        expect((await buffer(inflated(pieces, encoding, AT_ONCE))).toString()).toBe(text);
      }),
      { examples: [[[1]], [[1, 2]]], numRuns: 30 },
    );
  },
);

test('a deflate stream of zero bytes is empty, and one of one byte is an error', async () => {
  for (const bytes of [Buffer.of(), Buffer.of(0x78)]) {
    const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
    pieces.push(bytes, true);
    const reading = buffer(inflated(pieces, 'deflate', AT_ONCE));
    if (bytes.length === 0) expect(await reading).toHaveLength(0);
    else await expect(reading).rejects.toThrow(/end of file/);
  }
});

test('a body that inflates to more than 500 times its size ends after 1 MB of input, and not before', async () => {
  const bomb = gzipSync(Buffer.alloc(32 * 1_048_576));
  const count = Math.ceil(1_000_000 / bomb.length);
  const inflate = async (members: number): Promise<number> => {
    const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
    for (let n = 0; n < members; n++) pieces.push(bomb, n === members - 1);
    let sizeBytes = 0;
    for await (const piece of inflated(pieces, 'gzip', AT_ONCE)) sizeBytes += piece.length;
    return sizeBytes;
  };
  await expect(inflate(count)).rejects.toThrow(InflationRatioExceeded);
  expect(await inflate(1)).toBe(32 * 1_048_576);
});

test('bytes that inflate to an empty text go to the inflater no faster than allowed', async () => {
  const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
  const members = Buffer.alloc(20_000, gzipSync(''));
  for (let n = 0; n < 50; n++) pieces.push(members, n === 49);
  const sizes: number[] = [];
  let emptyTotal = 0;
  let goOn = (): void => undefined;
  const third = new Promise<void>((resolve) => (goOn = resolve));
  const reading = buffer(
    inflated(pieces, 'gzip', async (sizeBytes, emptySizeBytes) => {
      sizes.push(sizeBytes);
      emptyTotal += emptySizeBytes;
      if (sizes.length === 3) await third;
    }),
  );
  await vi.waitFor(() => expect(sizes).toHaveLength(3), 20_000);
  for (let turn = 0; turn < 100; turn++) await iteration();
  expect(sizes).toHaveLength(3);
  goOn();
  expect(await reading).toHaveLength(0);
  const total = sizes.reduce((sum, sizeBytes) => sum + sizeBytes);
  expect(total).toBe(1_000_000);
  // The inflater may still have the rest.
  expect(emptyTotal).toBeGreaterThan(total - 4 * 65_536);
});

test('input with as much output or more is never counted as empty', async () => {
  const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
  const emptySizes: number[] = [];
  const reading = buffer(
    inflated(pieces, 'gzip', (_, emptySizeBytes) => {
      emptySizes.push(emptySizeBytes);
      return Promise.resolve();
    }),
  );
  for (let n = 0; n < 100; n++) pieces.push(gzipSync(randomBytes(10_000)), false);
  pieces.push(gzipSync('{}'), true);
  await reading;
  expect(emptySizes.filter((size) => size > 0)).toEqual([]);
});

test('a cut ends the inflation in the middle of a piece', async () => {
  const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
  pieces.push(gzipSync(Buffer.alloc(256 * 1_048_576)), true);
  let sizeBytes = 0;
  const reading = (async () => {
    for await (const piece of inflated(pieces, 'gzip', AT_ONCE)) {
      sizeBytes += piece.length;
      if (sizeBytes > 1_048_576) pieces.finish('cut');
    }
  })();
  await expect(reading).rejects.toThrow(/abort/i);
  expect(sizeBytes).toBeLessThan(4 * 1_048_576);
});

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
] as const)(
  'bytes behind the end of %s are refused, in the last piece and in a piece of their own',
  async (encoding, compress) => {
    const body = compress('a line\n');
    for (const rest of [Buffer.from('{}'), Buffer.alloc(1)]) {
      for (const pieces of [[body, rest], [Buffer.concat([body, rest])]]) {
        const bytes = new StreamBytes({ pause() {}, resume() {} }, 1_000);
        for (const [index, piece] of pieces.entries())
          bytes.push(piece, index === pieces.length - 1);
        await expect(buffer(inflated(bytes, encoding, AT_ONCE))).rejects.toThrow(
          /follow its end|header check/,
        );
      }
    }
  },
);

// Megabytes of gzip that come at once take longer than the 10 s after which uWebSockets.js ends a connection that is not paused.
test('a connection counts as in use for as long as its pieces are worked at, however many come after the pause', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const told: string[] = [];
  const throttle = { pause: () => void told.push('pause'), resume: () => void told.push('resume') };
  const pieces = new StreamBytes(throttle, 60_000);
  const reading = pieces[Symbol.asyncIterator]();
  const first = reading.next();
  pieces.push(Buffer.alloc(4_096), false);
  pieces.push(Buffer.alloc(4_096), false);
  await first;
  expect(told.splice(0)).toEqual(['pause', 'pause']);
  vi.advanceTimersByTime(8_000);
  expect(told.splice(0)).toEqual(['resume', 'pause', 'resume', 'pause']);
  await reading.next();
  const third = reading.next();
  await vi.advanceTimersByTimeAsync(4_000);
  expect(told.splice(0)).toEqual(['resume', 'pause', 'resume']);
  pieces.push(Buffer.of(3), true);
  await third;
  await reading.return();
  vi.advanceTimersByTime(8_000);
  expect(told).toEqual([]);
});

// The chunks of a body may have one byte each, 80,000 of them in one read of the socket.
test('small pieces that come at once are read together', async () => {
  const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
  const reading = (async () => {
    const read: Uint8Array[] = [];
    for await (const piece of pieces) read.push(piece);
    return read;
  })();
  const text = 'a line of some bytes\n'.repeat(1_000);
  for (const byte of Buffer.from(text)) {
    pieces.push(Buffer.of(byte), false);
    // uWebSockets.js runs the callbacks of promises between two chunks.
    await Promise.resolve();
  }
  pieces.push(Buffer.of(), true);
  const read = await reading;
  expect(Buffer.concat(read).toString()).toBe(text);
  // The first 4 KB come in 256, 256, 512, 1,024 and 2,048 bytes.
  expect(read.length).toBeLessThanOrEqual(4 + Math.ceil(text.length / 4_096));
});

test('several streams that share memory are read as they were sent', async () => {
  const held = new HeldBytes(() => 0);
  const sendAndRead = async (): Promise<void> => {
    const sent = randomBytes(1_000_000);
    const stream = new StreamBytes({ pause() {}, resume() {} }, 60_000, (each) =>
      held.open(1, each),
    );
    const reading = (async () => {
      const read: Buffer[] = [];
      for await (const piece of stream.pieces()) {
        await iteration();
        read.push(Buffer.from(piece));
      }
      return Buffer.concat(read);
    })();
    for (let at = 0; at < sent.length; at += 9_000) {
      stream.push(sent.subarray(at, at + 9_000), at + 9_000 >= sent.length);
      await iteration();
    }
    expect((await reading).equals(sent)).toBe(true);
    stream.discard();
  };
  await Promise.all(Array.from({ length: 4 }, sendAndRead));
  await sendAndRead();
  expect(held.totalSizeBytes).toBe(0);
});
