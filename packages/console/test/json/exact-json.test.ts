/** Numbers of others, which a program would round. */
import { expect, test } from 'vitest';
import { parseExact } from '../../src/json/exact-json.ts';
import { linesOf, UNFOLDED } from '../../src/json/json-lines.ts';
import { pathsOf } from '../../src/json/json-paths.ts';

const TEXT = `{
  "id": 9007199254740993,
  "price": 1.10,
  "far": [
    1e400,
    -0
  ],
  "near": 12
}`;

test('each number is shown and copied as it was sent', () => {
  const value = parseExact(TEXT);
  const shown = linesOf(value, UNFOLDED).map(({ level, text }) => `${'  '.repeat(level)}${text}`);
  expect(shown.join('\n')).toBe(TEXT);
  expect(pathsOf(value).map((each) => each.value)).toEqual([
    '9007199254740993',
    '1.10',
    '1e400',
    '-0',
    '12',
  ]);
});

test('a text that is no JSON is refused, and a single number is one', () => {
  expect(() => parseExact('{')).toThrow(SyntaxError);
  expect(JSON.stringify(parseExact('12345678901234567890'))).toBe('12345678901234567890');
});
