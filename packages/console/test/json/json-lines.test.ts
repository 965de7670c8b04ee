/** JSON as lines that can be folded. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { linesOf, UNFOLDED } from '../../src/json/json-lines.ts';

const VALUE = { id: 'a', data: { items: [{ sku: 'b' }, 2, 3], none: [] }, end: true };

const textOf = (value: unknown, folding = UNFOLDED): string =>
  linesOf(value, folding)
    .map(({ level, text }) => `${'  '.repeat(level)}${text}`)
    .join('\n');

test('the lines of any unfolded value are the text that JSON has for it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(textOf(value)).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

test('a folded object or list is one line with the number of its members', () => {
  const isFolded = (path: string) => ['data.items', 'data.none', 'end'].includes(path);
  expect(textOf(VALUE, { ...UNFOLDED, isFolded })).toBe(`{
  "id": "a",
  "data": {
    "items": [ … 3 ],
    "none": []
  },
  "end": true
}`);
  const ofRoot = linesOf(VALUE, { ...UNFOLDED, isFolded: (_path, level) => level === 0 });
  expect(ofRoot).toEqual([{ path: '', level: 0, kind: 'folded', text: '{ … 3 }', value: VALUE }]);
});

test('members beyond the shown ones are a line with their number', () => {
  const shownCountOf = (path: string) => (path === 'data.items' ? 2 : Infinity);
  expect(textOf(VALUE, { ...UNFOLDED, shownCountOf })).toContain(`
    "items": [
      {
        "sku": "b"
      },
      2,
      … 1 more
    ],`);
});
