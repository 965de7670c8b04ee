/**
 * Bars of every page. It is small and accessible in light and dark, wide and narrow, and asks only its own host. Its parts
 * stay in their places as it opens, and no text is cut. A reload shows the same, and a sign-out takes effect at once.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SCREEN_PATHS } from '@sluice/api/console/console-files';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { CDPSession, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { COLOUR_RULES, problemsAtWidth, violationsOf } from './accessibility.ts';
import { WAIT } from '../fleet-under-test.ts';
import { builtConsole, type ConsoleUnderTest } from './console-under-test.ts';
import { shiftsOf, slowTimers } from './layout-shift.ts';
import { isShown, startScreens } from './screens-under-test.ts';

// A test opens three dozen screens, one after another.
vi.setConfig({ testTimeout: 600_000 });

/** The bar: cumulative layout shift of a screen. */
const SHIFT_MAX = 0.01;
const HEIGHT = 800;
const [WIDE, NARROW] = [
  { width: 1280, height: HEIGHT },
  { width: 360, height: HEIGHT },
] as const;
/** Live, the start and the ages of the fleet begin anew; an unknown event has no content. */
const BEGINS_ANEW = /^\/(?:live|start|fleet|$)/;

let world: ConsoleUnderTest;
let webhookId: number;
let paths: readonly string[];
beforeAll(async () => void ({ world, webhookId, paths } = await startScreens()));
afterAll(() => world.close());

/** Parts that moved while the page opened. */
async function movedOf(page: Page): Promise<object[]> {
  const { sum, moved } = await shiftsOf(page);
  return sum > SHIFT_MAX ? [{ url: page.url(), sum, moved }] : [];
}

/** The standard of a browser. */
const FONTS = { standard: 16, fixed: 13 };
const FONTS_TWICE_THE_SIZE = { standard: 32, fixed: 26 };
/** Of axe: the other rules judge the page in any size and colours alike. */
const RULES_OF_SIZE = ['target-size', 'scrollable-region-focusable'];

/**
 * Faults of the open page with text of twice the size, as a user sets it in the browser, and with forced colours. They are
 * set on the open page, since its opening takes most of the time.
 */
async function faultsEnlarged(page: Page, browser: CDPSession): Promise<object[]> {
  await page.emulateMedia({ forcedColors: 'active' });
  await browser.send('Page.setFontSizes', { fontSizes: FONTS_TWICE_THE_SIZE });
  const seen = await page.evaluate(() => ({
    fontSize: getComputedStyle(document.documentElement).fontSize,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    cut: [...document.querySelectorAll('body *')]
      .filter((element) => {
        const { overflowX, overflowY, textOverflow } = getComputedStyle(element);
        const hides = (overflow: string) => overflow === 'hidden' || overflow === 'clip';
        // Of one pixel are the texts for screen readers. A field scrolls its text.
        if (element.clientHeight <= 1 || textOverflow === 'ellipsis') return false;
        if (element instanceof HTMLInputElement) return false;
        return (
          (hides(overflowX) && element.scrollWidth > element.clientWidth + 1) ||
          (hides(overflowY) && element.scrollHeight > element.clientHeight + 1)
        );
      })
      .map((element) => `${element.tagName}.${element.className}`),
    moving: document.getAnimations().length,
  }));
  const violations = await violationsOf(page, [...COLOUR_RULES, ...RULES_OF_SIZE]);
  await browser.send('Page.setFontSizes', { fontSizes: FONTS });
  await page.emulateMedia({ forcedColors: null });
  const isWell = seen.fontSize === '30px' && seen.overflow === 0 && seen.moving === 0;
  return isWell && seen.cut.length === 0 && violations.length === 0
    ? []
    : [{ url: page.url(), ...seen, violations }];
}

// Each screen is opened twice for all of these bars, since the opening takes most of the time.
test('every screen is accessible, opens without a moved part, shows the same text after a reload, and cuts no text of twice the size', async () => {
  const found: object[] = [];
  const visit = async (page: Page, browser: CDPSession, path: string): Promise<void> => {
    const isKept = !BEGINS_ANEW.test(path);
    const zone = `${path.includes('?') ? '&' : '?'}tz=local`;
    const textNow = () =>
      page
        .locator('main')
        .innerText()
        .then((text) => text.replaceAll(/in \d+ \w+/g, ''));
    await page.emulateMedia({ reducedMotion: null });
    await page.goto(`${world.url}${path}${isKept ? zone : ''}`);
    await isShown(page);
    // Requests of a screen beside its first rows have ended, such as the words of a list to choose from.
    const isIdle = isKept ? page.waitForLoadState('networkidle') : undefined;
    const [moved] = await Promise.all([movedOf(page), isIdle]);
    found.push(...moved, ...(await problemsAtWidth(page)));
    const before = await textNow();
    await page.setViewportSize(NARROW);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.reload();
    await isShown(page);
    const moving = await page.evaluate(() => document.getAnimations().length);
    if (moving > 0) found.push({ url: page.url(), moving });
    found.push(...(await movedOf(page)), ...(await problemsAtWidth(page)));
    await page.setViewportSize(WIDE);
    if (isKept) {
      await expect.poll(textNow, { timeout: 20_000 }).toBe(before);
      await expect.poll(() => new URL(page.url()).searchParams.get('tz'), WAIT).toBe('local');
    }
    found.push(...(await faultsEnlarged(page, browser)));
  };
  // Two at a time: a page is watched for a second.
  const pages = [
    await world.demoPage({ viewport: WIDE }),
    await world.demoPage({ viewport: WIDE }),
  ];
  const rest = [...paths];
  await Promise.all(
    pages.map(async (page) => {
      await slowTimers(page);
      const browser = await page.context().newCDPSession(page);
      for (let path = rest.shift(); path !== undefined; path = rest.shift())
        await visit(page, browser, path);
      await page.context().close();
    }),
  );
  expect(found).toEqual([]);
});

test('the sign-in and the palette are accessible, wide and narrow', async () => {
  const page = await world.newPage();
  const found: object[] = [];
  const look = async (): Promise<void> => {
    for (const size of [WIDE, NARROW]) {
      await page.setViewportSize(size);
      found.push(...(await problemsAtWidth(page)));
    }
  };
  await page.goto(world.url);
  await page.getByRole('button', { name: 'Open the demo' }).waitFor();
  await look();
  await page.getByRole('button', { name: 'Open the demo' }).click();
  await isShown(page);
  await world.pressUntilShown(page, ['Control+k'], page.getByRole('dialog', { name: 'Go to' }));
  await look();
  expect(found).toEqual([]);
  await page.context().close();
});

test.each([WIDE, NARROW])(
  'the parts of the portal stay in their places as it opens, $width px wide',
  async (viewport) => {
    const page = await world.newPage({ viewport });
    await slowTimers(page);
    const { url } = await world.call<{ url: string }>('POST', '/v1/portal_links', {
      for: 'acme/jo',
      webhook_ids: [webhookId],
    });
    const [portal = ''] = url.split('#');
    const found: object[] = [];
    for (const address of [url, portal, `${portal}/webhooks/${webhookId}`]) {
      await page.goto(address);
      await isShown(page);
      found.push(...(await movedOf(page)));
    }
    expect(found).toEqual([]);
    await page.context().close();
  },
);

test.each([
  ['/', /\/v1\/statistics|\/credits\/balance/, (main: Locator) => main.filter({ hasNotText: '…' })],
  [
    '/audit',
    /\/field_options/,
    (main: Locator) => main.filter({ hasText: 'Refused use of a credential' }),
  ],
] as const)(
  '%s is shown without a slow read, whose answer moves no other part',
  async (path, slow, answeredOf) => {
    const page = await world.demoPage();
    let answer = (): void => {};
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route(slow, async (route) => {
      await isAnswered;
      await route.continue();
    });
    await page.goto(`${world.url}${path}`);
    await isShown(page);
    const answered = answeredOf(page.locator('main'));
    expect(await answered.count()).toBe(0);
    const { sum, moved } = await shiftsOf(page, {
      isFromNow: true,
      act: async () => {
        answer();
        await answered.waitFor();
      },
    });
    expect({ moved, isWithin: sum <= SHIFT_MAX }).toEqual({ moved, isWithin: true });
    await page.context().close();
  },
);

test('the first screen needs at most 110 KB of script and 20 KB of style, in eight requests', async () => {
  const page = await world.newPage();
  const sizes = new Map<string, number>();
  page.on('response', (response) => {
    sizes.set(new URL(response.url()).pathname, Number(response.headers()['content-length'] ?? 0));
  });
  await page.goto(world.url);
  await page.getByRole('button', { name: 'Open the demo' }).waitFor();
  const total = (end: string): number =>
    [...sizes].filter(([path]) => path.endsWith(end)).reduce((sum, [, size]) => sum + size, 0);
  expect(total('.js')).toBeGreaterThan(1_000);
  expect(total('.js')).toBeLessThanOrEqual(110_000);
  expect(total('.css')).toBeGreaterThan(500);
  expect(total('.css')).toBeLessThanOrEqual(20_000);
  expect(sizes.size).toBeLessThanOrEqual(8);
  await page.context().close();
});

test('the built files hold no secret but the write key of the demo, and keep only preferences', async () => {
  const directory = await builtConsole();
  const texts = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    // The documentation contains the demo's names.
    .filter((name) => !name.startsWith('docs'))
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile() && /\.(?:js|css|html|svg)$/.test(path))
    .map((path) => readFileSync(path, 'utf8'));
  const text = texts.join('\n');
  const secrets = [DEMO.appKey, DEMO.accountToken, DEMO.signingKey, DEMO.apiKey, 'sk_test'];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
  expect(text.match(/(?:local|session)Storage\.\w+/g)).toEqual([
    'localStorage.getItem',
    'localStorage.setItem',
  ]);
  expect(text.match(/\beval\(|new Function|document\.write/g)).toBe(null);
});

// WCAG 2.1.4: a user of speech input types letters by each word.
test('keys of one letter are switched off in this browser, and on again', async () => {
  const page = await world.demoPage();
  const list = page.getByRole('dialog', { name: 'Keys' });
  await world.pressUntilShown(page, ['?'], list);
  const off = page.getByRole('button', { name: 'No keys of one letter' });
  await list.getByRole('button', { name: 'No keys of one letter' }).click();
  await page.keyboard.press('Escape');
  await page.goto(`${world.url}/settings`);
  await off.waitFor();
  expect(await off.getAttribute('aria-pressed')).toBe('true');
  await page.keyboard.press('g');
  await page.keyboard.press('w');
  await page.keyboard.press('?');
  // The palette opens after those keys, so they had no effect.
  const palette = page.getByRole('dialog', { name: 'Go to' });
  await world.pressUntilShown(page, ['Control+k'], palette);
  expect(new URL(page.url()).pathname).toBe('/settings');
  expect(await list.count()).toBe(0);
  await page.keyboard.press('Escape');
  await off.click();
  await world.pressUntilShown(page, ['?'], list);
  await page.context().close();
});

test.each([
  ['/webhooks', 'link', 'bars'],
  // Without another read than the tail.
  ['/live', 'heading', 'Live'],
] as const)(
  'a session that is ended elsewhere is over on the open page %s',
  async (path, role, name) => {
    const page = await world.demoPage();
    await page.goto(`${world.url}${path}`);
    await page.getByRole(role, { name }).first().waitFor();
    if (path === '/live') await page.getByText('listening').waitFor();
    await page.request.delete(`${world.url}/console/session`, {
      headers: { origin: world.url },
    });
    await page.getByText('Your session is over.').waitFor();
    await expect.poll(() => new URL(page.url()).pathname, WAIT).toBe(path);
    await page.getByRole('button', { name: 'Open the demo' }).click();
    await page.getByRole(role, { name }).first().waitFor();
    await page.context().close();
  },
);

test('a sign-out that does not reach the API is shown as failed, and the session is still open', async () => {
  const page = await world.demoPage();
  await page.route('**/console/session', (route) =>
    route.request().method() === 'DELETE' ? route.abort('connectionaborted') : route.continue(),
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('The API does not answer.').waitFor();
  await page.unroute('**/console/session');
  const isSignedIn = await page.evaluate(async () => {
    const answer = await fetch('/console/session');
    return ((await answer.json()) as { readonly is_signed_in: boolean }).is_signed_in;
  });
  expect(isSignedIn).toBe(true);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.context().close();
});

test('the API serves the page at the address of each screen, and no other', () => {
  const folder = new URL('../../../../console/src/', import.meta.url);
  const screens = readFileSync(new URL('shell.tsx', folder), 'utf8');
  const imported = [
    ...screens.matchAll(
      /import \{ \w+Route \} from '(\.\/(?:screens|webhooks|deliveries|event-types|applications|feeds|account|billing|reference)\/[\w-]+\.tsx)'/g,
    ),
  ];
  const patterns = imported.map(([, path = '']) => {
    const [, pattern] =
      /pattern: '([^']+)'/.exec(readFileSync(new URL(path, folder), 'utf8')) ?? [];
    return pattern ?? '';
  });
  expect(patterns.toSorted()).toEqual([...SCREEN_PATHS].toSorted());
});

test('the bars hold on a path of each screen', () => {
  const visited = paths.map((path) => new URL(path, world.url).pathname);
  const unvisited = SCREEN_PATHS.filter((pattern) => {
    const shape = new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}$`);
    return !visited.some((path) => shape.test(path));
  });
  expect(unvisited).toEqual([]);
});
