import { expect, test } from 'vitest';
import { median } from '../src/report.ts';

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 2, 9], 3],
  [[5, 1], 3],
  [[7], 7],
  [[], NaN],
])('the median of %j is %d', (values, expected) => {
  expect(median(values)).toBe(expected);
});
