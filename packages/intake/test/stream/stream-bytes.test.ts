import { buffer } from 'node:stream/consumers';
import { setImmediate as iteration } from 'node:timers/promises';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { InflationRatioExceeded, inflated, StreamBytes } from '../../src/stream/stream-bytes.ts';

/** Whatever is given may be read now. */
const AT_ONCE = (): Promise<void> => Promise.resolve();

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
] as const)(
  '%s is inflated wherever its pieces are cut, also after the first byte',
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

test('a stream of one byte, or of none, is no deflate and no crash', async () => {
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

test('what inflates to nothing is given to the inflater no faster than it may be', async () => {
  const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
  const members = Buffer.alloc(20_000, gzipSync(''));
  for (let n = 0; n < 10; n++) pieces.push(members, n === 9);
  const sizes: number[] = [];
  let goOn = (): void => undefined;
  const third = new Promise<void>((resolve) => (goOn = resolve));
  const reading = buffer(
    inflated(pieces, 'gzip', async (sizeBytes) => {
      sizes.push(sizeBytes);
      if (sizes.length === 3) await third;
    }),
  );
  await vi.waitFor(() => expect(sizes).toHaveLength(3), 20_000);
  for (let turn = 0; turn < 100; turn++) await iteration();
  expect(sizes).toHaveLength(3);
  goOn();
  expect(await reading).toHaveLength(0);
  expect(sizes).toEqual(Array(10).fill(20_000));
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
  'bytes behind the end of %s are refused, in whatever piece they come',
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
  expect(told.splice(0)).toEqual(['pause', 'pause']);
  await first;
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

// The chunks of a body may have one byte each, 80,000 of them in what the socket brings at once.
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
    // uWebSockets.js runs what waits for a promise between two chunks.
    await Promise.resolve();
  }
  pieces.push(Buffer.of(), true);
  const read = await reading;
  expect(Buffer.concat(read).toString()).toBe(text);
  expect(read.length).toBeLessThanOrEqual(Math.ceil(text.length / 4_096));
});
