import { expect, test } from 'vitest';
import { TimeSlice } from '../../src/scheduling/time-slice.ts';

test('a lane makes room when its time slice is over and others wait, and goes on if they do not', () => {
  let isPlaceWanted = false;
  const timeSlice = new TimeSlice({ timeSliceMs: 500, isPlaceWanted: () => isPlaceWanted });
  timeSlice.begin(1_000);
  isPlaceWanted = true;
  expect(timeSlice.isOver(1_499)).toBe(false);
  expect(timeSlice.isOver(1_500)).toBe(true);
  isPlaceWanted = false;
  // It has asked just now.
  expect(timeSlice.isOver(1_599)).toBe(true);
  expect(timeSlice.isOver(1_600)).toBe(false);
  expect(timeSlice.isOver(10_999)).toBe(false);
  expect(timeSlice.isOver(11_000)).toBe(true);
});

test('a time slice begins once, when there is something to send', () => {
  const timeSlice = new TimeSlice({ timeSliceMs: 5, isPlaceWanted: () => true });
  expect(timeSlice.isOver(1_000_000)).toBe(false);
  timeSlice.begin(1_000_000);
  timeSlice.begin(1_000_004);
  expect(timeSlice.isOver(1_000_005)).toBe(true);
});
