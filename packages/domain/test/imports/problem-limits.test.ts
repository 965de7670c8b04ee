import { expect, test } from 'vitest';
import { PROBLEMS_SIZE_BYTES_MAX, problemsCapacity } from '../../src/imports/problem-limits.ts';

const MEBIBYTE = 1_048_576;

test('an import keeps a quarter of the bytes that the other imports of its workspace leave', () => {
  expect(problemsCapacity({ own: 0, others: 0 })).toBe(64 * MEBIBYTE);
  expect(problemsCapacity({ own: 0, others: 64 * MEBIBYTE })).toBe(48 * MEBIBYTE);
  expect(problemsCapacity({ own: 40 * MEBIBYTE, others: 64 * MEBIBYTE })).toBe(8 * MEBIBYTE);
  expect(problemsCapacity({ own: 48 * MEBIBYTE, others: 64 * MEBIBYTE })).toBe(0);
});

test('files of wrong rows one after another stay below the bound, and each keeps some problems', () => {
  let others = 0;
  for (let n = 0; n < 20; n++) {
    const own = problemsCapacity({ own: 0, others });
    expect(own).toBeGreaterThan(128 * 1_024);
    others += own;
  }
  expect(others).toBeLessThan(PROBLEMS_SIZE_BYTES_MAX);
});

test('an import keeps no problem if the others of its workspace hold more than the bound', () => {
  const others = 2 * PROBLEMS_SIZE_BYTES_MAX;
  expect(problemsCapacity({ own: 0, others })).toBe(0);
});
