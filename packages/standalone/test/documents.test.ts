/** Targets of this checkout's pages exist: files, headings, npm scripts, paths of source files. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const isPage = (name: string): boolean => name.endsWith('.md') && !name.includes('node_modules');

const pages = [
  ...readdirSync(ROOT),
  ...['docs', 'infra'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, String(name))),
  ),
  ...readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}/README.md`),
  'benchmarks/README.md',
  ...readdirSync(join(ROOT, 'benchmarks/history')).map((name) => `benchmarks/history/${name}`),
].filter((name) => isPage(name) && existsSync(join(ROOT, name)));

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** As GitHub makes them of headings. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );

test('there are pages', () => {
  expect(pages.length).toBeGreaterThan(30);
});

/** Outside the checkout npm answers it with somebody else's package. */
test('pages and sources never mention npx sluice', () => {
  const sources = readdirSync(join(ROOT, 'packages'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\/(src|bin)\/.*\.(ts|mjs)$/.test(name) && !name.includes('node_modules'))
    .map((name) => join('packages', name));
  expect(sources.length).toBeGreaterThan(300);
  const texts = [...pages, ...sources].map((name) => [name, read(name)] as const);
  expect(
    texts.filter(([, text]) => /npx (--?\S+ )*sluice/.test(text)).map(([name]) => name),
  ).toEqual([]);
});

test.each(pages)('%s leads somewhere', (page) => {
  for (const [link, path = '', anchor] of read(page).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
    if (/^\w+:/.test(path)) continue;
    const target = path === '' ? page : join(dirname(page), path);
    expect(existsSync(join(ROOT, target)), `${page}: ${link}`).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(target), `${page}: ${link}`).toContain(anchor);
  }
});

test.each(pages)('%s names npm scripts that there are', (page) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = [...read(page).matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g)];
  for (const [, name = ''] of named) expect(Object.keys(scripts), page).toContain(name);
});

test.each(pages)('%s names source files that there are', (page) => {
  // From the root, below packages/, or of the page's own package.
  const folders = ['', 'packages', dirname(page), join(dirname(page), 'src')];
  for (const [, path = ''] of read(page).matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.\w+)`/g)) {
    if (!/\.(ts|sql|md|conf|yaml|mjs|js|wasm)$/.test(path) || path.includes('NNNN')) continue;
    const isThere = folders.some((folder) => existsSync(join(ROOT, folder, path)));
    expect(isThere, `${page}: ${path}`).toBe(true);
  }
});
