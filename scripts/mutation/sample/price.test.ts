/** Misses the boundary of exactly 100 units. */
import { expect, test } from 'vitest';
import { priceOf } from './price.ts';

test('a price', () => {
  expect(priceOf(2, 50)).toBe(100);
  expect(priceOf(200, 50)).toBe(5000);
});
