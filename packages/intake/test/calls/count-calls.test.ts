import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CallCounter } from '../../src/calls/count-calls.ts';
import { inflateBody } from '../../src/calls/inflate-body.ts';

const item = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 3 }));

describe('the calls of a batch that is not kept', () => {
  test('are counted, however its bytes come', () => {
    fc.assert(
      fc.property(fc.array(item), fc.integer({ min: 1, max: 50 }), (batch, pieceSizeBytes) => {
        const bytes = Buffer.from(JSON.stringify({ context: { list: [{}] }, batch }, null, 1));
        const counter = new CallCounter();
        for (let at = 0; at < bytes.length; at += pieceSizeBytes)
          counter.add(bytes.subarray(at, at + pieceSizeBytes));
        expect(counter.count).toBe(batch.length);
      }),
    );
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
  ] as const)(
    'are counted in turns if it is compressed (%s), up to 16 MB',
    async (encoding, compress) => {
      const one = JSON.stringify({ type: 'track', pad: 'x'.repeat(1_000) });
      let turnCount = 0;
      const nextTurn = () => {
        turnCount++;
        return Promise.resolve({ isOver: () => false });
      };
      const batchOf = (count: number) =>
        Buffer.from(`{"batch":[${Array(count).fill(one).join()}]}`);
      const lost = await inflateBody(compress(batchOf(2_000)), encoding, 1_000_000, nextTurn);
      expect(lost).toEqual({ outcome: 'too-large', callCount: 2_000 });
      const huge = await inflateBody(compress(batchOf(40_000)), encoding, 1_000_000, nextTurn);
      if (huge instanceof Uint8Array || huge.outcome !== 'too-large')
        throw new Error('not too large');
      expect(huge.callCount).toBeGreaterThan(15_000);
      expect(huge.callCount).toBeLessThan(18_000);
      // One for each half of a megabyte: other calls are answered between two.
      expect(turnCount).toBeGreaterThan(30);
    },
  );
});
