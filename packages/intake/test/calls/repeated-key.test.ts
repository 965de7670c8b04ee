/**
 * Every object with a key twice is found.
 *
 * Few other objects are searched again.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findRepeatedKeys } from '@sluice/domain/parsing/lenient-json';
import { mayRepeatKey, RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

/** JSON as text, of objects whose keys may repeat; white space, escapes and brackets within texts included. */
const { value } = fc.letrec<{ value: string; object: string; list: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('1', 'null', '"a"', '"{\\"a\\":1,"', '"\\\\"', '"],[{"', '""'),
    tie('object'),
    tie('list'),
  ),
  object: fc
    .array(
      fc.tuple(fc.constantFrom('"a"', '"b"', '"c"', '"ä"', '""', '"a\\u0062"'), tie('value')),
      {
        maxLength: 4,
      },
    )
    .map((members) => `{ ${members.map(([key, member]) => `${key} : ${member}`).join(' ,')} }`),
  list: fc.array(tie('value'), { maxLength: 3 }).map((members) => `[${members.join(', ')}]`),
}));

const repeats = (text: string): boolean => findRepeatedKeys(text, undefined).size > 0;

test('each object with a repeated key is found; an object without a repeated or escaped key is not', () => {
  fc.assert(
    fc.property(value, (text) => {
      JSON.parse(text);
      if (repeats(text)) expect(mayRepeatKey(bytes(text))).toBe(true);
      else if (!text.includes('u0062')) expect(mayRepeatKey(bytes(text))).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

test('more levels or keys than are followed are looked at again', () => {
  expect(mayRepeatKey(bytes('['.repeat(255) + ']'.repeat(255)))).toBe(false);
  expect(mayRepeatKey(bytes('['.repeat(256) + ']'.repeat(256)))).toBe(true);
  const keys = (count: number) =>
    bytes(
      JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]))),
    );
  expect(mayRepeatKey(keys(1_024))).toBe(false);
  expect(mayRepeatKey(keys(1_025))).toBe(true);
  // In permissive mode it is for an issue alone, and a look at so many keys takes 7 ms.
  const { mayRepeatKey: look } = new RepeatedKeyLooks(() => 0);
  expect(look(keys(1_025))).toBe(false);
  expect(look(bytes('{"a":1,"a":2}'))).toBe(true);
});
