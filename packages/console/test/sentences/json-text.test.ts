/** JSON that was typed, and why it is none. */
import { expect, test } from 'vitest';
import { jsonOf } from '../../src/sentences/json-text.ts';

test('a value is read, nothing is null, and what is no JSON is said', () => {
  expect(jsonOf(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
  expect(jsonOf(' \n')).toEqual({ value: null });
  expect(jsonOf('{a: 1}').problem).toMatch(/^is not JSON: ./);
});
