/** JSON that a person typed, and the reason if it is invalid. */
import { expect, test } from 'vitest';
import { jsonOf } from '../../src/json/json-text.ts';

test('valid JSON is read, an empty text is null, and any other text is reported as not JSON', () => {
  expect(jsonOf(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
  expect(jsonOf(' \n')).toEqual({ value: null });
  expect(jsonOf('{a: 1}').problem).toMatch(/^is not JSON: ./);
});
