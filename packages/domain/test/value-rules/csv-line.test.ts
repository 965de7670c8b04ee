/** Cells of CSV that no spreadsheet runs. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvLine } from '../../src/value-rules/csv-line.ts';

test.each([
  ['=1+1', "'=1+1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['-2+3', "'-2+3"],
  ['\tx', "'\tx"],
  ['\n=1+1', '"\'\n=1+1"'],
  ['＝1+1', "'＝1+1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  [null, ''],
  [-42, '-42'],
  ['-42', '-42'],
  ['-4.2', '-4.2'],
  ['a,b', '"a,b"'],
  ['a "b"\nc', '"a ""b""\nc"'],
  ['=a,"b"', `"'=a,""b"""`],
])('the cell %j is written as %j', (cell, expected) => {
  expect(csvLine([cell, 'x'])).toBe(`${expected},x\r\n`);
});

test('a cell begins with a formula character only if it is a negative number', () => {
  fc.assert(
    fc.property(fc.string(), (cell) => {
      const written = csvLine([cell]).replace(/^"/, '');
      expect(/^[=+@\t\r]/.test(written) && written !== '\r\n').toBe(false);
      expect(/^-(?!\d+(\.\d+)?\r\n$)/.test(written)).toBe(false);
    }),
  );
});
