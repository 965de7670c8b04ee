import { expect, test } from 'vitest';
import { addedBytesMax, fillOf, isFull } from '../../src/operations/broker-fill.ts';

test('the fullest master decides, and one without a limit is never full', () => {
  expect(fillOf([])).toBe(0);
  expect(fillOf([{ usedBytes: 1e12, limitBytes: 0 }])).toBe(0);
  const uses = [
    { usedBytes: 50, limitBytes: 1_000 },
    { usedBytes: 90, limitBytes: 100 },
    { usedBytes: 500, limitBytes: 0 },
  ];
  expect(fillOf(uses)).toBe(0.9);
});

test('it shuts at the mark, stays shut for five points below it, and then opens', () => {
  expect(isFull(undefined, 0.899, 90)).toBe(false);
  expect(isFull(undefined, 0.9, 90)).toBe(true);
  expect(isFull(0, 0.851, 90)).toBe(true);
  expect(isFull(0, 0.849, 90)).toBe(false);
  expect(isFull(undefined, 0.851, 90)).toBe(false);
});

test('if other data holds the fill between the two marks, it opens after ten seconds below the upper mark', () => {
  expect(isFull(9_999, 0.86, 90)).toBe(true);
  expect(isFull(10_000, 0.86, 90)).toBe(false);
  expect(isFull(10_000, 0.9, 90)).toBe(true);
});

test('a small master is looked at after less, and one without a limit by the clock alone', () => {
  const uses = [
    { usedBytes: 0, limitBytes: 6_400_000 },
    { usedBytes: 0, limitBytes: 64_000_000 },
    { usedBytes: 0, limitBytes: 0 },
  ];
  expect(addedBytesMax(uses, 90)).toBeCloseTo(10_000);
  expect(addedBytesMax(uses, 80)).toBeCloseTo(20_000);
  expect(addedBytesMax([{ usedBytes: 9, limitBytes: 0 }], 90)).toBe(Infinity);
});
