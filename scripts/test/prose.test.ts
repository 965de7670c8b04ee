/** The check of prose (`scripts/check-prose.ts`). It finds each pattern, reads only prose, and lets no count rise. */
import { expect, test } from 'vitest';
import { comparedToCeilings } from '../prose/ceilings.ts';
import { findingsOf, type Passage } from '../prose/rules.ts';
import { passagesOfHashComments, passagesOfScript } from '../prose/texts-of-code.ts';
import { passagesOfPage } from '../prose/texts-of-pages.ts';

const rulesOf = (text: string, kind: Passage['kind'] = 'page'): string[] =>
  findingsOf({ line: 1, text, kind }).map(({ rule }) => rule);
const words = (count: number): string => Array.from({ length: count }, () => 'Word').join(' ');

test.each([
  ['What runs twice has one effect.', 'a clause as a noun'],
  ['It sends what is left.', 'a clause as a noun'],
  ['Who adds batches stops early.', 'a clause as a noun'],
  ['The log shows where the call came from.', 'a clause as a noun'],
  ['Where no key is set, the process stops.', '"where" without a place'],
  ['The process stops where no key is set.', '"where" without a place'],
  ['Nobody reads it.', 'a negative subject'],
  ['No one reads it.', 'a negative subject'],
  ['There is none of it left, and nothing is sent.', 'a negative subject'],
  ['Whoever asks gets it.', '"whoever"'],
  ['Redis tells the worker.', 'a program that talks'],
  ['The file says so.', 'a program that talks'],
  ['The clocks of Redis and those of Postgres differ.', '"that of"'],
  ['The keys open those who hold them.', '"that of"'],
  ['One thing: another: a third.', 'two colons'],
  ['One thing: another; a third.', 'two colons'],
  ['It is now possible.', 'a word that ages'],
  ['No client has seen it so far.', 'a word that ages'],
  [`${words(31)}.`, '31 words in a sentence'],
])('a page may not have: %s', (text, rule) => {
  expect(rulesOf(text)).toContainEqual(expect.stringContaining(rule));
});

test.each([
  'What happens to an event if Postgres is away?',
  'The folder where it lies has no name.',
  'It lies in a place where no other process looks.',
  'A client that has a key may read it.',
  'One thing: another. A second thing: a third.',
  `${words(30)}. ${words(30)}.`,
  'Calls of `now()` and `where` clauses are code.',
])('a page may have: %s', (text) => {
  expect(passagesOfPage(text).flatMap(findingsOf)).toEqual([]);
});

test('only pages are held to the length of sentences and to words that age', () => {
  expect(rulesOf(`It is now ${words(40)}.`, 'comment')).toEqual([]);
});

test('a header begins with a short noun phrase or a verb, and has twelve lines', () => {
  expect(rulesOf('Reads keys.\n\nThe rest is long.', 'header')).toEqual([]);
  expect(rulesOf(`${words(12)}: ${words(20)}.`, 'header')).toEqual([]);
  expect(rulesOf(`${words(13)}.`, 'header')).toEqual([expect.stringMatching(/^13 words/)]);
  expect(rulesOf('How keys are read.', 'header')).toEqual([expect.stringContaining('begins with')]);
  expect(rulesOf(`Reads.${'\nA line.'.repeat(12)}`, 'header')).toEqual([
    expect.stringMatching(/^13 lines/),
  ]);
});

test('a finding names its line and its words', () => {
  expect(findingsOf({ line: 7, text: 'A sentence.\nNobody\nreads it.', kind: 'page' })).toEqual([
    expect.objectContaining({ line: 8, quote: 'Nobody reads it.' }),
  ]);
});

test('a page falls into its paragraphs, items, cells and the comments of its code', () => {
  const page = [
    '# A heading',
    'Two lines',
    'with [a link](https://example.com/what) and `what` code.',
    '<!-- what a comment has -->',
    '- **Flags**: an item',
    '  of two lines',
    '1. another',
    '',
    '| a cell<br>its second line | `a|b` |',
    '|---|---|',
    '```sh',
    'curl what # a comment',
    '```',
    '```',
    'what a program prints',
    '```',
  ].join('\n');
  const passages = passagesOfPage(page).map(({ line, text }) => [line, text.trim()]);
  expect(passages).toEqual([
    [1, 'A heading'],
    [2, 'Two lines\nwith [a link] and `…` code.'],
    [5, 'an item\nof two lines'],
    [7, 'another'],
    [9, 'a cell'],
    [9, 'its second line'],
    [9, '`…`'],
    [12, 'a comment'],
  ]);
});

test('code gives its header, its comments and its messages, and no SQL', () => {
  const code = [
    '/** The header. */',
    "import { a } from 'what a module is';",
    '// A comment',
    '// of two lines.',
    "const message = 'the batch could ' +",
    "  'not be written';",
    'const other = `the ${a} was lost`;',
    "const one = 'what';",
    "const sql = 'select id from table where it is';",
    'const tagged = sql`what is left of it`;',
    '/** @param a - its meaning. */',
    '',
  ].join('\n');
  const passages = passagesOfScript('packages/a/src/a.ts', code).map(({ line, text, kind }) => [
    line,
    text.trim(),
    kind,
  ]);
  expect(passages).toEqual([
    [1, 'The header.', 'header'],
    [3, 'A comment\nof two lines.', 'comment'],
    [11, 'its meaning.', 'comment'],
    [5, 'the batch could not be written', 'message'],
    [7, 'the `…` was lost', 'message'],
  ]);
});

test('of the strings of a test file only the names of its tests count', () => {
  const code = "test('a name of it', () => f('a string of it'));";
  const texts = passagesOfScript('packages/a/test/a.test.ts', code).map(({ text }) => text);
  expect(texts).toEqual(['a name of it']);
});

test('comments that begin with # are read, whole lines together', () => {
  expect(
    passagesOfHashComments(
      '#!/bin/sh\n# One\n# comment.\n#   what --is code\nkey: 1 # another\n',
    ).map(({ line, text }) => [line, text]),
  ).toEqual([
    [2, 'One\ncomment.'],
    [5, 'another'],
  ]);
});

test('a count above its ceiling is refused, a new file has the ceiling 0, and ceilings only fall', () => {
  const counts = { fell: 1, same: 2, rose: 4, added: 1, clean: 0 };
  expect(comparedToCeilings(counts, { fell: 3, same: 2, rose: 3, gone: 9 })).toEqual({
    counted: counts,
    risen: ['rose', 'added'],
    lowered: { fell: 1, same: 2, rose: 3 },
  });
});

test('the files of a folder count together, except files with a ceiling of their own', () => {
  const counts = { 'a/b/one': 2, 'a/b/two': 3, 'a/b/own': 1, 'a/three': 1 };
  const ceilings = { 'a/b/': 5, 'a/b/own': 0, 'a/': 3 };
  expect(comparedToCeilings(counts, ceilings)).toEqual({
    counted: { 'a/b/': 5, 'a/b/own': 1, 'a/': 1 },
    risen: ['a/b/own'],
    lowered: { 'a/b/': 5, 'a/': 1 },
  });
});
