import { readLenientJson, WRONG_BYTE } from '@sluice/domain/parsing/lenient-json';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const read = (text: string, isBatch = true) => {
  const found = readLenientJson(text, isBatch ? 'batch' : undefined);
  return found && { value: found.value, faults: [...found.faults] };
};

test('valid JSON is read as JSON.parse reads it, without a fault', () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.constantFrom(0, 1, '\t'),
      fc.boolean(),
      (value, space, isBatch) => {
        const text = JSON.stringify({ batch: [value, value], value }, undefined, space);
        expect(read(text, isBatch)).toEqual({ value: JSON.parse(text), faults: [] });
      },
    ),
  );
});

describe('NaN and Infinity outside of texts are null, and each is reported with its path', () => {
  test.each(['NaN', 'Infinity', '-Infinity'])('%s', (word) => {
    expect(read(`{"batch":[{"a":"${word}"},{"p":{"list":[1,${word}]},"k":1}]}`)).toEqual({
      value: { batch: [{ a: word }, { p: { list: [1, null] }, k: 1 }] },
      faults: [[1, [{ kind: 'not-finite', path: ['p', 'list', 1], found: word }]]],
    });
  });

  test('in a body without items, and beside the items of one with them', () => {
    expect(read('{"batch":[{"a":NaN}]}', false)?.faults).toEqual([
      [null, [{ kind: 'not-finite', path: ['batch', 0, 'a'], found: 'NaN' }]],
    ]);
    expect(read('{"sentAt":NaN,"batch":[]}')?.faults).toEqual([
      [null, [{ kind: 'not-finite', path: ['sentAt'], found: 'NaN' }]],
    ]);
  });

  test.each([
    'nan',
    '-NaN',
    '+1',
    '01',
    '.5',
    '1.',
    '0x10',
    'undefined',
    'None',
    'True',
    'NaNs',
    '',
  ])('%j is not one of them and makes the body invalid', (word) =>
    expect(read(`{"a":${word}}`)).toBeUndefined(),
  );
});

describe('a fault within one item ends with the item', () => {
  const NEIGHBOUR = '{"k":"}],{\\"\\\\"}';
  test.each([
    ['a comma at the end of an object', '{"a":1,}'],
    ['a comma at the end of a list', '{"a":[1,]}'],
    ['texts in single quotes', "{'a':1}"],
    ['an escape that there is not', '{"a":"\\x41"}'],
    ['a line break in a text', '{"a":"1\n2"}'],
    ['a word of Python', '{"a":None}'],
    ['half a number', '{"a":-}'],
    ['no value at all', ''],
    ['a comment', '/* none */ {"a":1}'],
    ['two values', '{"a":1} {"b":2}'],
    ['a key without a value', '{"a"}'],
    ['brackets a thousand levels deep', `${'['.repeat(1_000)}${']'.repeat(1_000)}`],
  ])('%s', (_, item) => {
    const found = read(`{"batch":[${NEIGHBOUR},${item},${NEIGHBOUR}],"sentAt":"x"}`);
    const neighbour = JSON.parse(NEIGHBOUR);
    expect(found).toMatchObject({
      value: { batch: [neighbour, null, neighbour], sentAt: 'x' },
      faults: [
        [1, [{ kind: 'unreadable', path: [], found: expect.stringMatching(/^position \d+$/) }]],
      ],
    });
  });

  test.each([
    ['an end that never comes', '{"batch":[{"a":1},{"b":'],
    ['an item that is never closed', '{"batch":[{"a":1},{"b":[1}'],
    ['a text that is never closed', '{"batch":[{"a":1},{"b":"x}]}'],
    ['a fault outside of the items', '{"batch":[{"a":1}],"sentAt":x}'],
    ['something behind the end', '{"batch":[{"a":1}]} x'],
  ])('%s is the whole body’s', (_, text) => expect(read(text)).toBeUndefined());

  test('if the batch comes twice, the last one and its faults count', () => {
    expect(read('{"batch":[{"a":NaN}],"batch":[{"a":1},{"a":NaN}]}')).toMatchObject({
      value: { batch: [{ a: 1 }, { a: null }] },
      faults: [
        [null, [{ kind: 'repeated-key', path: ['batch'] }]],
        [1, [{ kind: 'not-finite' }]],
      ],
    });
  });
});

test('a text or a key with bytes that are not UTF-8 is reported with its path', () => {
  const text = `{"batch":[{"a":"x${WRONG_BYTE}"},{"${WRONG_BYTE}":1},{"c":1}]}`;
  expect(read(text)?.faults).toMatchObject([
    [0, [{ kind: 'not-utf8', path: ['a'] }]],
    [1, [{ kind: 'not-utf8', path: [] }]],
  ]);
});

test('one item reports at most twenty faults', () => {
  const found = readLenientJson(`{"batch":[{"a":[${'NaN,'.repeat(1_000)}1]}]}`, 'batch');
  expect(found?.faults.get(0)).toHaveLength(20);
});

test('a body with more than 10,000 faults is not a batch', () => {
  const faults = (count: number) => read(`{"batch":[${'x,'.repeat(count)}{"a":1}]}`);
  expect(faults(10_000)?.faults).toHaveLength(10_000);
  expect(faults(10_001)).toBeUndefined();
});
