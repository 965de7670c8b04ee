/** Places of a flush are read as they were written. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readPlaces, writePlaces } from '../../src/operations/flush-places.ts';

test('any ascending places are read as they were written', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(5_000)), (some) => {
      const places = some.toSorted((one, other) => one - other);
      expect(readPlaces(writePlaces(places))).toEqual(places);
    }),
  );
});

test('a neighbour takes one character', () => {
  expect(writePlaces([0, 1, 2, 3])).toBe('0000');
  expect(writePlaces([3, 40])).toBe('3(10)');
});
