/**
 * Bars of every page. It is small and accessible in light and dark, wide and narrow, and asks only its own host. A reload
 * shows the same, and a sign-out takes effect at once.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SCREEN_PATHS } from '@sluice/api/console/console-files';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { violationsOf } from './accessibility.ts';
import { WAIT } from '../fleet-under-test.ts';
import { builtConsole, type ConsoleUnderTest, startConsole } from './console-under-test.ts';
import { shiftsOf, slowTimers } from './layout-shift.ts';

// A test opens three dozen screens, one after another.
vi.setConfig({ testTimeout: 600_000 });

/** The bar: cumulative layout shift of a screen. */
const SHIFT_MAX = 0.01;

let world: ConsoleUnderTest;
let webhookId: number;
let paths: readonly string[];
beforeAll(async () => {
  world = await startConsole();
  webhookId = await world.makeWebhook('bars', 'http://127.0.0.1:9/hook');
  await world.send('/v1/identify', {
    userId: 'ada',
    traits: { email: 'ada@example.com', unsubscribed: false },
  });
  await world.send('/v1/track', { userId: 'ada', event: 'Order', messageId: 'bars-1' });
  await world.send('/v1/track', { event: 'x' }, false);
  // The fleet lists it.
  await fetch(`${world.fleet.intake.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('mistyped_write_key:')}` },
    body: '{"userId":"ada","event":"Order"}',
  });
  await world.send('/v1/group', { userId: 'ada', groupId: 'acme', traits: { plan: 'pro' } });
  await world.fleet.event('ada', 'Order');
  const schema = { type: 'object', required: ['total'] };
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'Paid.', schema });
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'It is paid.' });
  await world.call('POST', '/v1/applications', { id: 'acme', name: 'Acme' });
  await world.call('POST', '/v1/applications/acme/endpoints', {
    name: 'of acme',
    endpoint: 'http://127.0.0.1:9/hook',
    event_names: ['invoice.paid'],
  });
  await world.call('PUT', '/v1/feeds/warehouse', { events: ['event'] });
  const [{ keyId } = { keyId: 0 }] = (
    await sql<{ keyId: number }>`
      select min(credential_id)::int as "keyId" from api_credentials where account_id = ${DEMO.accountId}`.execute(
      world.fleet.database,
    )
  ).rows;
  const importId = await world.importFile('o.csv', '_svc_name,_svc_customer_id\nOrder,ada\n,\n');
  paths = [
    '/',
    '/start',
    '/live',
    '/events/bars-1',
    '/events/none',
    '/issues',
    '/webhooks',
    `/webhooks/${webhookId}?delivery=1`,
    '/deliveries?state=pending',
    '/portal-links',
    '/event-types',
    '/event-types/invoice.paid?version=1',
    '/applications',
    '/applications?begins=none',
    '/applications/acme',
    '/feeds',
    '/feeds/warehouse',
    '/people?begins=a',
    '/people/ada?attribute=email',
    '/objects',
    '/objects/1/acme',
    '/imports',
    `/imports/${importId}`,
    '/keys?over=shown',
    `/keys/${keyId}`,
    '/users?user=1',
    '/audit',
    '/audit/1',
    '/billing',
    '/billing/credits?type=llm',
    '/billing/usage?by=week',
    '/settings',
    '/device',
    '/fleet',
    '/docs/all?find=webhook',
    '/docs/reporting-webhooks/createReportingWebhook?language=java',
  ];
});
afterAll(() => world.close());

const isShown = async (page: Page): Promise<void> => {
  await page
    .locator('main h1, main h2')
    .first()
    .waitFor()
    .catch(async (error: unknown) => {
      throw new Error(`${page.url()}: ${await page.locator('body').innerText()}`, { cause: error });
    });
  await page.waitForFunction(() => document.querySelector('.waiting') === null);
};

test.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
] as const)('every screen is accessible: %s, %i px wide', async (colorScheme, width) => {
  const page = await world.newPage({ colorScheme, viewport: { width, height: 800 } });
  const found: object[] = [];
  const look = async (path: string): Promise<void> => {
    const violations = await violationsOf(page);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    if (violations.length > 0 || overflow > 0) found.push({ path, violations, overflow });
  };
  await page.goto(world.url);
  await page.getByRole('button', { name: 'Open the demo' }).waitFor();
  await look('sign-in');
  await page.getByRole('button', { name: 'Open the demo' }).click();
  await isShown(page);
  for (const path of paths) {
    await page.goto(`${world.url}${path}`);
    await isShown(page);
    await look(path);
  }
  await page.keyboard.press('Control+k');
  await look('palette');
  expect(found).toEqual([]);
  await page.context().close();
});

test.each([1280, 360])(
  'the parts of a screen stay in their places as it opens, %i px wide',
  async (width) => {
    const page = await world.demoPage({ viewport: { width, height: 800 } });
    await slowTimers(page);
    const found: object[] = [];
    const open = async (url: string): Promise<void> => {
      await page.goto(url);
      await isShown(page);
      const { sum, moved } = await shiftsOf(page);
      if (sum > SHIFT_MAX) found.push({ url, sum, moved });
    };
    for (const path of paths) await open(`${world.url}${path}`);
    const { url } = await world.call<{ url: string }>('POST', '/v1/portal_links', {
      for: 'acme/jo',
      webhook_ids: [webhookId],
    });
    const [portal = ''] = url.split('#');
    await open(url);
    for (const path of ['', `/webhooks/${webhookId}`]) await open(`${portal}${path}`);
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

test('no screen cuts text of twice the size, with forced colours and without motion', async () => {
  const page = await world.demoPage({
    ...{ forcedColors: 'active', reducedMotion: 'reduce' },
    viewport: { width: 1280, height: 800 },
  });
  // As a user sets it in the browser, whose standard is 16.
  const browser = await page.context().newCDPSession(page);
  await browser.send('Page.setFontSizes', { fontSizes: { standard: 32, fixed: 26 } });
  const found: object[] = [];
  for (const path of paths) {
    await page.goto(`${world.url}${path}`);
    await isShown(page);
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
    const violations = await violationsOf(page);
    if (seen.fontSize !== '30px' || seen.overflow > 0 || seen.moving > 0)
      found.push({ path, ...seen });
    else if (seen.cut.length > 0 || violations.length > 0)
      found.push({ path, cut: seen.cut, violations });
  }
  expect(found).toEqual([]);
  await page.context().close();
});

test('a reload of any address shows the same text', async () => {
  const page = await world.demoPage();
  // Live, the start and the ages of the fleet begin anew; an unknown event has no content.
  for (const path of paths.filter((each) => !/^\/(?:live|start|fleet|$)/.test(each))) {
    await page.goto(`${world.url}${path}${path.includes('?') ? '&' : '?'}tz=local`);
    await isShown(page);
    const textNow = () =>
      page
        .locator('main')
        .innerText()
        .then((text) => text.replaceAll(/in \d+ \w+/g, ''));
    // Requests of a screen beside its first rows have ended, such as the words of a list to choose from.
    await page.waitForLoadState('networkidle');
    const before = await textNow();
    await page.reload();
    await isShown(page);
    await expect.poll(textNow, { timeout: 20_000 }).toBe(before);
    await expect.poll(() => new URL(page.url()).searchParams.get('tz'), WAIT).toBe('local');
  }
  await page.context().close();
});

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
