/** JSON that a person typed, and the reason if it is invalid; paths of values. */
import { expect, test } from 'vitest';
import { jsonOf, pathsOf } from '../../src/sentences/json-text.ts';

test('valid JSON is read, an empty text is null, and any other text is reported as not JSON', () => {
  expect(jsonOf(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
  expect(jsonOf(' \n')).toEqual({ value: null });
  expect(jsonOf('{a: 1}').problem).toMatch(/^is not JSON: ./);
});

test('each value has the path that a program reads it by', () => {
  const value = {
    data: { identifiers: { email: 'a@b.example' }, 'a "key"': null },
    items: [{ sku: 'a' }, []],
    '': {},
  };
  const paths = pathsOf(value);
  expect(paths).toEqual([
    { path: 'data.identifiers.email', value: 'a@b.example' },
    { path: String.raw`data["a \"key\""]`, value: 'null' },
    { path: 'items[0].sku', value: 'a' },
    { path: 'items[1]', value: '[]' },
    { path: '[""]', value: '{}' },
  ]);
  expect(pathsOf([true])).toEqual([{ path: '[0]', value: 'true' }]);
  expect(pathsOf('text')).toEqual([]);
});
