/** Misses the boundary of exactly 100 units. */
import { expect, test } from 'vitest';
import { countDown, priceOf } from './price.ts';

test('a price', () => {
  expect(priceOf(2, 50)).toBe(100);
  expect(priceOf(200, 50)).toBe(5000);
});

test('counting down ends', () => expect(countDown(3)).toBe(0));
