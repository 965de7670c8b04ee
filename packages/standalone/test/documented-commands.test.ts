/**
 * Commands of all pages: a program types each block, or the page gives a reason.
 *
 * In a block that is not run, the names of scripts, benchmarks and files must exist.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, PAGES, pagesOf, readPage, ROOT, stepsOf, TYPISTS } from './command-pages.ts';

const typists = Object.keys(TYPISTS) as (keyof typeof TYPISTS)[];
const blocks = PAGES.flatMap((page) => blocksOf(page).map((block) => ({ page, ...block })));
const commands = blocks.filter(({ language }) => language === 'sh');
const notRun = commands.filter(({ reason }) => reason !== undefined);

test('each block of commands is typed by a program, or a line before it gives the reason', () => {
  expect(commands.length).toBeGreaterThan(100);
  const forgotten = commands.filter(
    ({ page, reason }) =>
      reason === undefined && !typists.some((typist) => TYPISTS[typist].test(page)),
  );
  expect(
    forgotten.map(({ place }) => place),
    'name a program in command-pages.ts, or give the reason: <!-- not run: … -->',
  ).toEqual([]);
});

test('commands are in blocks of sh, and in no other block', () => {
  const others = blocks.filter(
    ({ language, text }) =>
      /^(?:bash|shell|console|zsh)$/.test(language) ||
      (language === '' && /^(?:\$ |sudo |kubectl |docker |npm |node |curl |git |\.\/)/m.test(text)),
  );
  expect(others.map(({ place }) => place)).toEqual([]);
});

test.each(typists)('%s types each block of its pages that has no reason', (typist) => {
  expect(existsSync(join(ROOT, typist))).toBe(true);
  const pages = pagesOf(typist);
  expect(pages.length).toBeGreaterThan(0);
  for (const page of pages) {
    const expected = commands.filter((block) => block.page === page && block.reason === undefined);
    expect(stepsOf(page), page).toHaveLength(expected.length);
    expect(typists.filter((other) => TYPISTS[other].test(page))).toEqual([typist]);
  }
});

/** Without the convention of the runbooks. */
test('blocks of recipes are plain', () => {
  for (const page of pagesOf('scripts/test/recipes.test.ts')) {
    const plain = readPage(page).match(/^```sh\n/gm) ?? [];
    const all = commands.filter((block) => block.page === page);
    expect(plain, page).toHaveLength(all.length);
    expect(all.filter(({ reason }) => reason !== undefined)).toEqual([]);
  }
});

const { scripts } = JSON.parse(readPage('package.json')) as { scripts: Record<string, string> };
const catalogue = readPage('benchmarks/src/catalogue.ts');
const isFile = (path: string): boolean => existsSync(join(ROOT, path));

/** Kinds of names in a block that is not run, each with its pattern and its check. */
const NAMES: readonly (readonly [string, RegExp, (name: string) => boolean])[] = [
  ['script', /\bnpm run (?:--silent )?([a-z][\w:-]*)/g, (name) => name in scripts],
  ['script', /\bnpm (start|test)\b/g, (name) => name in scripts],
  [
    'benchmark',
    /\bnpm run bench -- ([a-z][\w-]*)/g,
    (name) => new RegExp(`^  '?${name}'?: \\{$`, 'm').test(catalogue),
  ],
  [
    'parser to fuzz',
    /\bnpm run fuzz -- ([\w-]+)/g,
    (name) => isFile(`scripts/fuzzing/targets/${name}.ts`),
  ],
  ['project', / --project ([\w-]+)/g, (name) => isFile(`packages/${name}/test`)],
  ['path', /(?<![\w./:-])((?:packages|docs|scripts|infra|benchmarks)\/[\w./-]*\w)/g, isFile],
];

test.each(NAMES)('each %s in a block that is not run exists (%s)', (_, pattern, isThere) => {
  const named = notRun.flatMap(({ place, text }) =>
    [...text.matchAll(pattern)].map(([, name = '']) => ({ place, name })),
  );
  expect(named).not.toEqual([]);
  expect(named.filter(({ name }) => !isThere(name))).toEqual([]);
});
