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

/** All texts of two letters up to a length, the shortest first. */
function wordsUpTo(lengthMax: number): string[] {
  const words = [''];
  for (const word of words) if (word.length < lengthMax) words.push(`${word}a`, `${word}b`);
  return words;
}

// Ends of one value that begin another one are rare among random texts.
test('a text contains one of two values if one of them is a part of it, for all short values and texts', () => {
  const values = wordsUpTo(4).slice(1);
  const texts = wordsUpTo(6);
  const wrong = values.flatMap((one) =>
    values.flatMap((other) => {
      const search = new TextSearch([one, other]);
      return texts
        .filter((text) => search.isAnyIn(text) !== (text.includes(one) || text.includes(other)))
        .map((text) => [one, other, text]);
    }),
  );
  expect(wrong).toEqual([]);
});
