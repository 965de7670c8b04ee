import { expect, test } from 'vitest';
import { storedEventId, ulidTimeMs } from '../../src/values/ulid.ts';

test('a ULID is the same event id in either letter case; any other text is exact', () => {
  expect(storedEventId('01arz3ndektsv4rrffq69g5fav')).toBe('01ARZ3NDEKTSV4RRFFQ69G5FAV');
  expect(storedEventId('Message-a1')).toBe('Message-a1');
  // U is no digit of a ULID.
  expect(storedEventId('01uuz3ndektsv4rrffq69g5fav')).toBe('01uuz3ndektsv4rrffq69g5fav');
});

test('a ULID gives the time of its creation, and any other text gives no time', () => {
  expect(ulidTimeMs('01ARYZ6S41TSV4RRFFQ69G5FAV')).toBe(1_469_918_176_385);
  expect(ulidTimeMs('7ZZZZZZZZZTSV4RRFFQ69G5FAV')).toBe(2 ** 48 - 1);
  expect(ulidTimeMs('8ZZZZZZZZZTSV4RRFFQ69G5FAV')).toBeUndefined();
  expect(ulidTimeMs('message-1')).toBeUndefined();
});
