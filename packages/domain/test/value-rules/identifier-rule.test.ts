/** Verdicts on identifiers and emails, with the words that their sender reads. */
import { describe, expect, test } from 'vitest';
import {
  foldEmail,
  isEmail,
  judgeEmail,
  judgeIdentifier,
} from '../../src/value-rules/identifier-rule.ts';

const read = (value: string) => ({ outcome: 'read', value });
const refused = (because: string, code = 'invalid') => ({ outcome: 'refused', code, because });
const UNSTORABLE = refused('holds U+0000 or half of a surrogate pair, which cannot be stored');
const TOO_MANY_DIGITS = refused('has more digits than a JSON number keeps; send it as a string');

describe('an identifier', () => {
  test.each<[unknown, object]>([
    [undefined, { outcome: 'absent' }],
    [null, { outcome: 'absent' }],
    ['', { outcome: 'absent' }],
    [' \n\u200b', { outcome: 'absent' }],
    ['a b', read('a b')],
    [' a\n', { ...read('a'), change: 'trimmed' }],
    [12, read('12')],
    [-1.5, read('-1.5')],
    [Number.MAX_SAFE_INTEGER, read('9007199254740991')],
    [Number.MIN_SAFE_INTEGER, read('-9007199254740991')],
    [Number.MAX_SAFE_INTEGER + 1, TOO_MANY_DIGITS],
    [Number.MIN_SAFE_INTEGER - 1, TOO_MANY_DIGITS],
    [Infinity, TOO_MANY_DIGITS],
    [NaN, TOO_MANY_DIGITS],
    [true, refused('must be a string')],
    [['a'], refused('must be a string')],
    ['a\0', UNSTORABLE],
    ['a\ud800', UNSTORABLE],
    ['éééé', read('éééé')],
    ['ééééa', refused('is 9 bytes long; the bound is 8', 'too_long')],
  ])('of %j', (value, verdict) => {
    expect(judgeIdentifier(value, 8 + 8 * Number(typeof value === 'number'))).toEqual(verdict);
  });

  test('is not searched again for characters that its reader has found to be storable', () => {
    expect(judgeIdentifier('a\0', 8, false)).toEqual(read('a\0'));
  });
});

describe('an email', () => {
  test.each<[unknown, object]>([
    ['A@x.yz', read('A@x.yz')],
    [' a@x.yz ', { ...read('a@x.yz'), change: 'trimmed' }],
    ['', { outcome: 'absent' }],
    ['a', refused('is not an email address')],
    ['a@x', refused('is not an email address')],
    [12, refused('is not an email address')],
    [false, refused('must be a string')],
    ['a\ud800@x.yz', UNSTORABLE],
    ['a@longer.yz', refused('is 11 bytes long; the bound is 8', 'too_long')],
  ])('of %j', (value, verdict) => {
    expect(judgeEmail(value, 8)).toEqual(verdict);
  });

  test('has one at sign, a domain with a dot, and no invisible character', () => {
    expect(['a@x.yz', 'ä.b+c@sub.xn--x.yz', 'a@x.y1'].filter(isEmail)).toHaveLength(3);
    expect(
      [
        '@x.yz',
        'a@.yz',
        'a@x.y',
        'a@@x.yz',
        'a b@x.yz',
        'a\u200b@x.yz',
        '"a"@x.yz',
        'a@[1.2.3.4]',
      ].filter(isEmail),
    ).toEqual([]);
  });

  test('is compared with A to Z as a to z, and with each other letter as it is', () => {
    expect(foldEmail('Ann.B@X.YZ')).toBe('ann.b@x.yz');
    expect(foldEmail('ann@x.yz')).toBe('ann@x.yz');
    expect(foldEmail('ANN@X.YZ')).toBe('ann@x.yz');
    // The Kelvin sign and the capital dotted I.
    expect(foldEmail('\u212aA@x.yz')).toBe('\u212aa@x.yz');
    expect(foldEmail('\u0130A@x.yz')).toBe('\u0130a@x.yz');
  });
});
