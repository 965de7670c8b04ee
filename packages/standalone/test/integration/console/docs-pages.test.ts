/** The documentation under the console: found by a search, read without scripts, and held to the bars of every page. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { problemsAtWidth, problemsOf, violationsOf } from './accessibility.ts';
import { builtConsole, type ConsoleUnderTest, startConsole } from './console-under-test.ts';
import { WAIT } from '../fleet-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('a reader of the console finds how to rotate a signing key, also in a browser without scripts', async () => {
  const console = await world.demoPage();
  await console.goto(`${world.url}/docs/all`);
  await console.getByRole('link', { name: 'Guides and operations' }).click();
  await console.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor();
  await console.context().close();

  const page = await world.newPage({ javaScriptEnabled: false });
  await page.goto(`${world.url}/docs/pages`);
  await page.getByLabel('Search').fill('rotate signing key');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.waitForURL((url) => url.searchParams.get('q') === 'rotate signing key');
  const results = page.getByRole('region', { name: 'Results' });
  await results.getByRole('link').first().click();
  const answer = `${world.url}/docs/pages/operations/keys#rotate-a-signing-key`;
  await expect.poll(() => page.url(), WAIT).toBe(answer);
  await page.getByRole('heading', { name: 'Rotate a signing key' }).waitFor();
  await page.context().close();
});

test.each([
  ['redis lost', 'operations/runbooks/redis-lost'],
  ['backup and restore', 'operations/runbooks/backup-and-restore'],
  ['SEALING_KEYS', 'operations/runbooks/rotate-every-key'],
  ['sluice_parked_operations', 'operations/outages'],
  ['webhooks replay', 'reference/command-line'],
])('a search for "%s" has the page %s among its first three', async (query, name) => {
  const response = await fetch(`${world.url}/docs/pages?q=${encodeURIComponent(query)}`);
  const found = [...(await response.text()).matchAll(/<li><a href="\/docs\/pages\/([^"#]+)#/g)];
  expect(found.slice(0, 3).map(([, page]) => page)).toContain(name);
});

test('every page and the list are accessible, and ask only for themselves, a style sheet and an icon', async () => {
  const page = await world.newPage();
  const asked = new Map<string, number>();
  page.on('response', (response) => {
    const size = Number(response.headers()['content-length'] ?? 0);
    asked.set(new URL(response.url()).pathname, size);
  });
  const found: object[] = [];
  for (const path of [
    '',
    '?q=keys',
    '/operations/keys',
    '/operations/redis',
    '/reference/settings',
  ]) {
    asked.clear();
    await page.goto(`${world.url}/docs/pages${path}`);
    found.push(...(await problemsOf(page)));
    const names = [...asked.keys()].filter((name) => !/\.(?:css|svg)$/.test(name));
    expect(names).toEqual([`/docs/pages${path.replace(/\?.*/, '')}`]);
    // The hard stop for the first screen of the console is 150 KB.
    expect([...asked.values()].reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(110_000);
  }
  expect(found).toEqual([]);
  await page.context().close();
}, 240_000);

/** One section in so many is judged: axe needs minutes for all of them, and one program writes them all. */
const JUDGED_SECTION_OF = 50;
/** Rules whose result depends on the width. Colours of cells that a narrow table scrolls away cannot be judged. */
const WIDTH_RULES = ['scrollable-region-focusable', 'target-size'];

test.each(['/docs', '/docs/plain'])(
  '%s is accessible in light and dark, fits into 360 px, and breaks no rule of its policy',
  async (path) => {
    const page = await world.newPage({ viewport: { width: 360, height: 800 } });
    const messages: string[] = [];
    page.on('console', (message) => messages.push(message.text()));
    await page.goto(`${world.url}${path}`);
    const wholeWidth = await page.evaluate((judgedOf) => {
      const { scrollWidth } = document.documentElement;
      let section = -1;
      for (const part of document.querySelectorAll('main > *')) {
        if (part.tagName === 'H2') section++;
        if (section % judgedOf !== 0) part.remove();
      }
      return scrollWidth;
    }, JUDGED_SECTION_OF);
    expect(wholeWidth).toBe(360);
    expect(await violationsOf(page, WIDTH_RULES)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 3_600 });
    expect(await problemsAtWidth(page)).toEqual([]);
    expect(messages).toEqual([]);
    await page.context().close();
  },
);

test('every link to another page leads to one, and to a heading of it', async () => {
  const folder = join(await builtConsole(), 'docs');
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.html') && name !== 'list.html')
    .map((name) => name.slice(0, -'.html'.length));
  expect(names.length).toBeGreaterThan(50);
  const texts = new Map<string, string>(
    await Promise.all(
      ['', ...names.map((name) => `/${name}`)].map(async (name) => {
        const response = await fetch(`${world.url}/docs/pages${name}`);
        expect(response.status, name).toBe(200);
        return [`/docs/pages${name}`, await response.text()] as const;
      }),
    ),
  );
  const broken: string[] = [];
  for (const [from, text] of texts)
    for (const [, to = '', anchor] of text.matchAll(/href="(\/docs\/pages[^"#]*)(?:#([^"]+))?"/g)) {
      const target = texts.get(to);
      const isThere = anchor === undefined || target?.includes(` id="${anchor}"`);
      if (target === undefined || !isThere) broken.push(`${from}: ${to}#${anchor ?? ''}`);
    }
  expect(broken).toEqual([]);
});
