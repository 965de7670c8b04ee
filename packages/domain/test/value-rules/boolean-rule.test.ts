/** Verdicts on booleans, however a client writes them. */
import { expect, test } from 'vitest';
import { isTrue, judgeBoolean } from '../../src/value-rules/boolean-rule.ts';

const absent = { outcome: 'absent' };
const refused = { outcome: 'refused', code: 'invalid', because: 'is neither true nor false' };
const read = (value: boolean) => ({ outcome: 'read', value });

test.each<[unknown, object]>([
  [true, read(true)],
  [1, read(true)],
  ['1', read(true)],
  [' TRUE\n', read(true)],
  [false, read(false)],
  [0, read(false)],
  ['0', read(false)],
  [' False', read(false)],
  [undefined, absent],
  [null, absent],
  [' ', absent],
  ['yes', refused],
  [2, refused],
  [['true'], refused],
])('%j', (value, verdict) => {
  expect(judgeBoolean(value)).toEqual(verdict);
  expect(isTrue(value)).toBe('value' in verdict && verdict.value);
});
