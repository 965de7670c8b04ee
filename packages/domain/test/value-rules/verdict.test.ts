/** Absent values, and the ends that a text loses. */
import { describe, expect, test } from 'vitest';
import { ABSENT, isAbsent, refused, trimmed } from '../../src/value-rules/verdict.ts';

/** Separators of files and of lines, NEL, and characters without a width: blanks beside the ones of `trim`. */
const OTHER_BLANKS =
  '\x1c\x1d\x1e\x1f\x85\xad\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e' +
  '\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069';
const UNITS = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));
const isBlank = (unit: string): boolean => unit.trim() === '' || OTHER_BLANKS.includes(unit);

describe('a text loses at both ends', () => {
  test('the blanks of every language and the characters without a width, and keeps all others', () => {
    const wrong = UNITS.filter((unit) => {
      const [alone, around] = isBlank(unit) ? ['', 'ab'] : [unit, `${unit}ab${unit}`];
      return trimmed(unit) !== alone || trimmed(`${unit}ab${unit}`) !== around;
    });
    expect(wrong.map((unit) => unit.charCodeAt(0).toString(16))).toEqual([]);
  });

  test.each([
    ['a', 'a'],
    [' a', 'a'],
    ['a ', 'a'],
    [' a ', 'a'],
    ['\n\n a', 'a'],
    ['a\t \n', 'a'],
    ['\r\n ab \u200b\n', 'ab'],
    [' a  b ', 'a  b'],
    ['', ''],
    [' ', ''],
    [' \n ', ''],
  ])('of %j is %j', (text, kept) => {
    expect(trimmed(text)).toBe(kept);
  });
});

describe('absent is', () => {
  test('each text of blanks alone, and no other text', () => {
    const wrong = UNITS.filter((unit) =>
      [unit, `${unit}\u200b ${unit}`].some((text) => isAbsent(text) !== isBlank(unit)),
    );
    expect(wrong).toEqual([]);
    expect(UNITS.filter((unit) => isAbsent(`${unit}a`) || isAbsent(`a${unit}`))).toEqual([]);
  });

  test.each([
    [undefined, true],
    [null, true],
    ['', true],
    [0, false],
    [NaN, false],
    [false, false],
    [[], false],
    [{}, false],
    ['null', false],
  ])('%j: %j', (value, expected) => {
    expect(isAbsent(value)).toBe(expected);
  });
});

test('a refused value is invalid, unless the rule names another fault, and an absent one is absent', () => {
  expect(ABSENT).toEqual({ outcome: 'absent' });
  const because = 'must be a string';
  expect(refused(because)).toEqual({ outcome: 'refused', code: 'invalid', because });
  expect(refused(because, 'too_long')).toEqual({ outcome: 'refused', code: 'too_long', because });
});
