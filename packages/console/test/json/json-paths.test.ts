/** Paths of the values in JSON. */
import { expect, test } from 'vitest';
import { pathsOf } from '../../src/json/json-paths.ts';

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
