import { buffer } from 'node:stream/consumers';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inflated, StreamBytes } from '../../src/stream/stream-bytes.ts';

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
        expect((await buffer(inflated(pieces, encoding))).toString()).toBe(text);
      }),
      { examples: [[[1]], [[1, 2]]], numRuns: 30 },
    );
  },
);

test('a stream of one byte, or of none, is no deflate and no crash', async () => {
  for (const bytes of [Buffer.of(), Buffer.of(0x78)]) {
    const pieces = new StreamBytes({ pause() {}, resume() {} }, 1_000);
    pieces.push(bytes, true);
    const reading = buffer(inflated(pieces, 'deflate'));
    if (bytes.length === 0) expect(await reading).toHaveLength(0);
    else await expect(reading).rejects.toThrow(/end of file/);
  }
});
