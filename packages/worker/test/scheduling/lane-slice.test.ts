import { expect, test } from 'vitest';
import { LaneSlice } from '../../src/scheduling/lane-slice.ts';

test('a lane makes room when its slice is over and others wait, and goes on where nobody does', () => {
  let isPlaceWanted = false;
  const slice = new LaneSlice({ sliceMs: 500, isPlaceWanted: () => isPlaceWanted });
  slice.begin(1_000);
  isPlaceWanted = true;
  expect(slice.isOver(1_499)).toBe(false);
  expect(slice.isOver(1_500)).toBe(true);
  isPlaceWanted = false;
  // It has asked just now.
  expect(slice.isOver(1_599)).toBe(true);
  expect(slice.isOver(1_600)).toBe(false);
  expect(slice.isOver(10_999)).toBe(false);
  expect(slice.isOver(11_000)).toBe(true);
});

test('a slice begins once, when there is something to send', () => {
  const slice = new LaneSlice({ sliceMs: 5, isPlaceWanted: () => true });
  expect(slice.isOver(1_000_000)).toBe(false);
  slice.begin(1_000_000);
  slice.begin(1_000_004);
  expect(slice.isOver(1_000_005)).toBe(true);
});
