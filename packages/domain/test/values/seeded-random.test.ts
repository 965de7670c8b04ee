import { expect, test } from 'vitest';
import { pick, seededRandom } from '../../src/values/seeded-random.ts';

// Seeds are written down with their findings: other numbers would make them worthless.
test('a seed gives the numbers that it always gave', () => {
  const random = seededRandom(1);
  expect([random(), random(), random()]).toEqual([
    0.6270739405881613, 0.002735721180215478, 0.5274470399599522,
  ]);
  expect(seededRandom(2 ** 31 + 5)()).toBe(0.5801103678531945);
});

test('every item is picked, and no other value', () => {
  const random = seededRandom(7);
  const items = ['a', 'b', 'c'];
  const picked = new Set(Array.from({ length: 100 }, () => pick(random, items)));
  expect([...picked].toSorted()).toEqual(items);
});
