import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MinHeap } from '../../src/scheduling/min-heap.ts';

test('items come out by key, and items of equal keys in the order in which they came', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 9 }))), (steps) => {
      const heap = new MinHeap<{ key: number; ordinal: number }>();
      let model: { key: number; ordinal: number }[] = [];
      for (const [ordinal, key] of steps.entries()) {
        if (key === null) {
          const [expected] = model;
          expect(heap.pop()).toEqual(expected);
          model = model.slice(1);
        } else {
          heap.push({ key, ordinal }, key);
          model = [...model, { key, ordinal }].toSorted(
            (a, b) => a.key - b.key || a.ordinal - b.ordinal,
          );
        }
        expect(heap.size).toBe(model.length);
      }
    }),
  );
});
