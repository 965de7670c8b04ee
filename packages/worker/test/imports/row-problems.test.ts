/** The problems of a file's rows that are kept: a number of rows, and of bytes. */
import { PROBLEM_ROWS_MAX } from '@sluice/domain/imports/problem-limits';
import type { Issue } from '@sluice/domain/operations/issue';
import { expect, test } from 'vitest';
import { keepProblems, type JudgedRow } from '../../src/imports/row-problems.ts';

const NONE = { rowsFailed: 0, rowsWarned: 0, sizeBytes: Infinity };
const issue: Issue = { code: 'required', field: 'name', message: 'is required' };

const wrongRow = (
  rowNumber: number,
  cell = 'ann',
  issues: readonly Issue[] = [issue],
): JudgedRow => ({
  rowNumber,
  cells: [cell],
  event: undefined,
  issues,
});

const wrongRows = (count: number): JudgedRow[] =>
  Array.from({ length: count }, (_, index) => wrongRow(index + 1));

test('each problem counts with the whole row, so a row with three problems counts three times', () => {
  const once = keepProblems([wrongRow(1, 'x'.repeat(10_000))], NONE);
  const thrice = keepProblems([wrongRow(1, 'x'.repeat(10_000), [issue, issue, issue])], NONE);
  expect(once.sizeBytes).toBeGreaterThan(10_000);
  expect(thrice.sizeBytes).toBe(3 * once.sizeBytes);
  expect(thrice.problems.map(({ position }) => position)).toEqual([0, 1, 2]);
});

test('problems beyond the bytes are left out, and the kept ones never take more', () => {
  const { sizeBytes } = keepProblems(wrongRows(1), NONE);
  const kept = keepProblems(wrongRows(10), { ...NONE, sizeBytes: 4 * sizeBytes - 1 });
  expect(kept.problems.map(({ rowNumber }) => rowNumber)).toEqual([1, 2, 3]);
  expect(kept.sizeBytes).toBe(3 * sizeBytes);
  expect(keepProblems(wrongRows(10), { ...NONE, sizeBytes: 0 }).problems).toEqual([]);
});

test('a large row that does not fit leaves the space to the small rows after it', () => {
  const rows = [wrongRow(1, 'x'.repeat(10_000)), wrongRow(2)];
  const { problems } = keepProblems(rows, { ...NONE, sizeBytes: 5_000 });
  expect(problems.map(({ rowNumber }) => rowNumber)).toEqual([2]);
});

test('rows beyond the number of rows are left out', () => {
  const { problems } = keepProblems(wrongRows(3), { ...NONE, rowsFailed: PROBLEM_ROWS_MAX - 2 });
  expect(problems.map(({ rowNumber }) => rowNumber)).toEqual([1, 2]);
});

test('a cell is kept with the characters that Postgres can hold', () => {
  const { problems } = keepProblems([wrongRow(1, 'a\0b\uD800')], NONE);
  expect(problems[0]?.record).toEqual(['a\uFFFDb\uFFFD']);
});
