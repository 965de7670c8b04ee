/** Headers of a webhook as lines of a form: the changes that it sends, and lines that are not headers. */
import { expect, test } from 'vitest';
import { changedHeaders, headerLines, headersOf } from '../../src/sentences/header-text.ts';

const STORED = { authorization: '••••7c65', 'x-team': '••••' };

test('headers are lines, and lines are headers, with colons and blanks in their values', () => {
  expect(headersOf(headerLines(STORED))).toEqual(STORED);
  expect(headersOf(' x-at :  http://a.example:80/b c \n\n')).toEqual({
    'x-at': 'http://a.example:80/b c',
  });
  expect(headersOf('x-empty:')).toEqual({ 'x-empty': '' });
});

test.each(['authorization', ': value', 'x-team: a\nX-Team: b', 'x-team: a\nx-team: a'])(
  '%j are no headers',
  (text) => {
    expect(headersOf(text)).toBeUndefined();
    expect(changedHeaders(text, '', false)).toBeUndefined();
  },
);

test('unchanged headers stay, an emptied form removes them, and a stored value never goes to another server', () => {
  const shown = headerLines(STORED);
  expect(changedHeaders(shown, shown, false)).toEqual({});
  expect(changedHeaders('', shown, false)).toEqual({ headers: {} });
  expect(changedHeaders(shown, shown, true)).toEqual({ headers: {} });
  expect(changedHeaders('x-team: shop', shown, true)).toEqual({ headers: { 'x-team': 'shop' } });
  expect(changedHeaders('', '', true)).toEqual({});
});
