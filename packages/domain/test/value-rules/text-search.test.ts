/** A search for many values at once equals a search for each. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextSearch } from '../../src/value-rules/text-search.ts';

const letters = (lengthMax: number) =>
  fc
    .array(fc.constantFrom('a', 'b', 'ä', '\u{1f600}'), { maxLength: lengthMax })
    .map((parts) => parts.join(''));

test('a text contains one of the values if one of them is a part of it', () => {
  fc.assert(
    fc.property(fc.array(letters(5), { maxLength: 6 }), letters(30), (values, text) => {
      const search = new TextSearch(values);
      expect(search.isAnyIn(text)).toBe(values.some((value) => text.includes(value)));
    }),
    { numRuns: 2_000 },
  );
});
