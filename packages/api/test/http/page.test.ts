import { expect, test } from 'vitest';
import { z } from 'zod';
import { readStart, splitPage, writePageToken } from '../../src/http/page.ts';
import { RequestRefused } from '../../src/http/request-validation.ts';

const position = z.tuple([z.string(), z.int()]);

test('a position comes back from its token as it was', () => {
  const token = writePageToken(['ä/+="', 7]);
  expect(token).toMatch(/^[\w-]+$/);
  expect(readStart(token, position)).toEqual(['ä/+="', 7]);
});

test('absent and empty both mean the first page', () => {
  expect(readStart(undefined, position)).toBeUndefined();
  expect(readStart('', position)).toBeUndefined();
});

test.each([
  'x',
  '%',
  writePageToken(['a']),
  writePageToken(['a', 1.5]),
  writePageToken(['a\0', 1]),
  writePageToken(['\ud800', 1]),
  Buffer.from('null').toString('base64url'),
])('the token %j of no list of this shape is refused', (token) => {
  expect(() => readStart(token, position)).toThrow(RequestRefused);
});

test('there is a next page if and only if the query found one more row', () => {
  const positionOf = (row: number) => [row];
  expect(splitPage([], 2, positionOf)).toEqual({ page: [], next: '' });
  expect(splitPage([1, 2], 2, positionOf)).toEqual({ page: [1, 2], next: '' });
  expect(splitPage([1, 2, 3], 2, positionOf)).toEqual({ page: [1, 2], next: writePageToken([2]) });
});
