import { expect, test } from 'vitest';
import { printable, printableJson } from '../../src/values/printable.ts';

/** Everything that moves a cursor, sets a title, ends a line or turns the writing round. */
const HOSTILE =
  '\u001B[2J\u001B]0;t\u0007\u009B31m\r\n\t\b\u007F\u0000\u202E\u2066\u200F\u2028\uD800';

test('no character of somebody else drives a terminal', () => {
  expect(printable(HOSTILE)).toBe(
    String.raw`\u001b[2J\u001b]0;t\u0007\u009b31m\u000d\u000a\u0009\u0008\u007f\u0000\u202e\u2066\u200f\u2028\ud800`,
  );
});

test('text in any script stays as it is', () => {
  const text = 'Ünïcode, 日本語, עברית, 👩‍👩‍👧 and C:\\temp';
  expect(printable(text)).toBe(text);
});

test('JSON of any content keeps its value, and its text is printable', () => {
  const value = { [HOSTILE]: HOSTILE, text: 'Ünïcode 👩‍👩‍👧' };
  const json = printableJson(value);
  expect(JSON.parse(json)).toEqual(value);
  expect(printable(json)).toBe(json);
  expect(json).toContain('Ünïcode 👩‍👩‍👧');
});
