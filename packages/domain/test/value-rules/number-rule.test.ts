/** Verdicts on whole numbers that name something. */
import { expect, test } from 'vitest';
import { judgePositiveInteger } from '../../src/value-rules/number-rule.ts';

const absent = { outcome: 'absent' };
const refused = {
  outcome: 'refused',
  code: 'invalid',
  because: 'must be an integer from 1 to 2147483647',
};
const read = (value: number) => ({ outcome: 'read', value });

test.each<[unknown, object]>([
  [1, read(1)],
  [2_147_483_647, read(2_147_483_647)],
  ['2147483647', read(2_147_483_647)],
  [' 12\n', read(12)],
  [undefined, absent],
  [null, absent],
  ['', absent],
  [0, refused],
  ['0', refused],
  [-1, refused],
  [1.5, refused],
  [2_147_483_648, refused],
  ['2147483648', refused],
  ['00000000001', refused],
  ['1e3', refused],
  ['1 2', refused],
  [true, refused],
  [[1], refused],
])('%j', (value, verdict) => {
  expect(judgePositiveInteger(value)).toEqual(verdict);
});
