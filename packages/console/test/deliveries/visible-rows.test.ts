/** The rows of a long list that are drawn. */
import { expect, test } from 'vitest';
import {
  DRAWN_COUNT_MAX,
  drawnRows,
  pagesOf,
  ROW_HEIGHT_PX,
} from '../../src/deliveries/visible-rows.ts';

test('at every scroll position all visible rows are drawn, and never more rows than the maximum', () => {
  const rowCount = 100_000;
  const heightPx = 720;
  for (const scrollTop of [0, 1, 399, 40_000, 1_999_999, rowCount * ROW_HEIGHT_PX - heightPx]) {
    const { first, end } = drawnRows(scrollTop, heightPx, rowCount);
    expect(first * ROW_HEIGHT_PX).toBeLessThanOrEqual(scrollTop);
    expect(end * ROW_HEIGHT_PX).toBeGreaterThanOrEqual(scrollTop + heightPx);
    expect(end).toBeLessThanOrEqual(rowCount);
    expect(end - first).toBeLessThanOrEqual(DRAWN_COUNT_MAX);
  }
  expect(drawnRows(0, 10_000, 1_000)).toEqual({ first: 0, end: DRAWN_COUNT_MAX });
  expect(drawnRows(0, 720, 3)).toEqual({ first: 0, end: 3 });
  expect(drawnRows(5_000, 720, 0)).toEqual({ first: 0, end: 0 });
});

test('the pages of a range are the pages with at least one of its rows', () => {
  expect(pagesOf({ first: 0, end: 50 }, 50)).toEqual([0]);
  expect(pagesOf({ first: 49, end: 51 }, 50)).toEqual([0, 1]);
  expect(pagesOf({ first: 100, end: 100 }, 50)).toEqual([]);
});
