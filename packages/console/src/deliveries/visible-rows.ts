/** Rows of a long list to draw, and its pages to read. Pure. */

/** All rows are as high, so that a place in the list is a place on the screen. */
export const ROW_HEIGHT_PX = 40;
/** Above and below the visible rows, so that a key or a wheel finds the next rows drawn. */
const BEYOND_COUNT = 8;
/** The bar: at most so many rows in the document. */
export const DRAWN_COUNT_MAX = 60;
/** Browsers draw an element of 33 million pixels at most; Firefox of 17. */
export const LISTED_COUNT_MAX = 400_000;

/** Rows from `first` on, 0 being the newest; `end` is not among them. */
export interface RowRange {
  readonly first: number;
  readonly end: number;
}

export function drawnRows(scrollTop: number, heightPx: number, rowCount: number): RowRange {
  const above = Math.floor(scrollTop / ROW_HEIGHT_PX);
  const seenCount = Math.ceil(heightPx / ROW_HEIGHT_PX) + 1;
  const first = Math.max(0, Math.min(above - BEYOND_COUNT, rowCount - 1));
  const end = Math.min(rowCount, above + seenCount + BEYOND_COUNT, first + DRAWN_COUNT_MAX);
  return { first, end: Math.max(first, end) };
}

/** Pages of `pageCount` rows that have any of these rows, by their numbers from 0. */
export function pagesOf({ first, end }: RowRange, pageCount: number): number[] {
  if (end <= first) return [];
  const from = Math.floor(first / pageCount);
  const to = Math.floor((end - 1) / pageCount);
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
