/** Column names in the head of a file, with any separator. The import itself reads the file anew. */
import { expect, test } from 'vitest';
import { columnsOf } from '../../src/sentences/csv-head.ts';

test.each([
  ['a,b,c\n1,2,3', ['a', 'b', 'c']],
  ['a;b\r\n1;2', ['a', 'b']],
  ['a\tb', ['a', 'b']],
  ['a|b|c,d', ['a', 'b', 'c,d']],
  ['\uFEFF"a" , "b"', ['a', 'b']],
  ['one', ['one']],
  ['"Total, in $",_svc_name', ['Total, in $', '_svc_name']],
  ['"Size 7"" and more";b;c', ['Size 7" and more', 'b', 'c']],
  ['"two\nlines",b\n1,2', ['two\nlines', 'b']],
  // Packed, or in another encoding: the page shows no column names.
  ['\u001f\uFFFD\u0008', []],
  ['a\u0000,\u0000b\u0000', []],
])('%j', (head, columns) => {
  expect(columnsOf(head)).toEqual(columns);
});
