/** Equal values of a payload and a schema, and deep ones. */
import { expect, test } from 'vitest';
import { isSameJson } from '../../src/event-schemas/same-json.ts';
import type { Json } from '../../src/values/json.ts';

const isSame = (one: Json, other: Json): boolean => isSameJson(one, other, () => undefined);

test.each<[Json, Json, boolean]>([
  [{ a: 1, b: [true, null] }, { b: [true, null], a: 1 }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: 1 }, { b: 1 }, false],
  [JSON.parse('{"__proto__":1}') as Json, {}, false],
  [{}, { toString: 1 }, false],
  [[1, 2], [2, 1], false],
  [[1], { 0: 1 }, false],
  [[], {}, false],
  [{}, null, false],
  [{ a: '1' }, { a: 1 }, false],
])('%j is the same as %j: %s', (one, other, expected) => {
  expect(isSame(one, other)).toBe(expected);
  expect(isSame(other, one)).toBe(expected);
});

// A schema that was stored before it had a bound of levels ended the process of intake.
test('a value of 100,000 levels is compared with a shallow one', () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as Json;
  expect(isSame([[]], deep)).toBe(false);
  expect(isSame({ a: [] }, { a: deep })).toBe(false);
});

test('each comparison reports the number of its members', () => {
  const looks: number[] = [];
  isSameJson({ a: [1, 2] }, { a: [1, 3] }, (count) => looks.push(count));
  expect(looks).toEqual([2, 4]);
});
