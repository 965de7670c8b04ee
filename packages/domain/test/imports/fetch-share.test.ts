/** Places of accounts in the fetches of a worker. */
import { expect, test } from 'vitest';
import { accountsWithoutPlace } from '../../src/imports/fetch-share.ts';

const held = (counts: Record<number, number>) =>
  new Map(Object.entries(counts).map(([id, count]) => [Number(id), count]));

test('an account gets a quarter of the places, also while the others are free', () => {
  expect(accountsWithoutPlace(held({ 1: 3, 2: 1 }), 16)).toEqual([]);
  expect(accountsWithoutPlace(held({ 1: 4, 2: 1 }), 16)).toEqual([1]);
});

test('the last place is for an account without one', () => {
  expect(accountsWithoutPlace(held({ 1: 4, 2: 4, 3: 4, 4: 2 }), 16)).toEqual([1, 2, 3]);
  expect(accountsWithoutPlace(held({ 1: 4, 2: 4, 3: 4, 4: 3 }), 16)).toEqual([1, 2, 3, 4]);
});
