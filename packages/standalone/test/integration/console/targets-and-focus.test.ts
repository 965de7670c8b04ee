/** Targets and focus of each screen, with the tail and the portal. */
import type { JSHandle, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { problemsOf } from './accessibility.ts';
import type { ConsoleUnderTest } from './console-under-test.ts';
import { isShown, startScreens } from './screens-under-test.ts';

// A test opens three dozen screens, one after another.
vi.setConfig({ testTimeout: 600_000 });

const TARGET_PX_MIN = 24;
/** Presses for the longest screen, twice. */
const TABS_MAX = 600;
const PORTAL_STOPS_MIN = 4;

let world: ConsoleUnderTest;
let paths: readonly string[];
beforeAll(async () => void ({ world, paths } = await startScreens()));
afterAll(() => world.close());

/** A page whose tail begins with two calls and a number of dropped lines. */
async function openTail(): Promise<Page> {
  const page = await world.demoPage();
  const line = (outcome: string, details: object) => ({
    ...{ kind: 'received', outcome, name: 'Order', at_ms: Date.now(), people: [{ id: 'ada' }] },
    details: { type: 'event.track', source: 'pipelines.track', ...details },
  });
  const events = [
    `data: ${JSON.stringify(line('accepted', { event_id: 'bars-1' }))}`,
    'event: dropped\ndata: {"count":38}',
    `data: ${JSON.stringify(line('refused', { code: 'invalid', field: 'userId' }))}`,
  ];
  const body = events.map((event) => `${event}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  await page.route('**/v1/stream', (route) => route.fulfill({ headers, body }), { times: 1 });
  await page.goto(`${world.url}/live`);
  await page.getByText('38 lines not shown').waitFor();
  return page;
}

test('the live tail with lines, a gap and an open line is accessible', async () => {
  const page = await openTail();
  await page.getByRole('button', { name: 'Order' }).last().click();
  await page.getByRole('link', { name: 'Trace' }).waitFor();
  await page.getByRole('tree').getByText('"outcome": "accepted"').click();
  await page.getByRole('link', { name: 'Filter by this' }).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await page.context().close();
});

test('the lines of a JSON tree and their folds are targets of 24 pixels', async () => {
  const page = await openTail();
  await page.getByRole('button', { name: 'Order' }).last().click();
  await page.getByRole('tree').waitFor();
  const small = await page.locator('[data-line], .fold').evaluateAll((elements, least) => {
    const sizes = elements.map((element) => {
      const { width, height, left } = element.getBoundingClientRect();
      const shownFrom = element.closest('.pre')!.getBoundingClientRect().left;
      return { of: element.className, width: Math.min(width, left + width - shownFrom), height };
    });
    return {
      count: sizes.length,
      small: sizes.filter((size) => size.width < least || size.height < least),
    };
  }, TARGET_PX_MIN);
  expect(small.count).toBeGreaterThan(5);
  expect(small.small).toEqual([]);
  await page.context().close();
});

interface Stop {
  readonly name: string;
  readonly isSeen: boolean;
  /** It is the element that was the first stop. */
  readonly isFirst: boolean;
}

/** @returns undefined if no element has the focus, as behind the last stop. */
const stopOf = (page: Page, first: JSHandle<Element | null> | null): Promise<Stop | undefined> =>
  page.evaluate((start) => {
    const focused = document.activeElement;
    if (!focused || focused === document.body) return undefined;
    // The browser draws the focus of the button inside a field of a date.
    const isOfBrowser = focused.matches('input[type^="date"]:not(:focus-visible)');
    // The tree keeps the focus, and its chosen line shows it.
    const shown = focused.querySelector(':scope [role="treeitem"][aria-selected="true"]');
    const { outlineStyle, outlineWidth } = getComputedStyle(shown ?? focused);
    const { width, height } = focused.getBoundingClientRect();
    return {
      name: `${focused.tagName} ${focused.getAttribute('aria-label') ?? focused.textContent.slice(0, 40)}`,
      isSeen:
        isOfBrowser ||
        (outlineStyle === 'solid' && outlineWidth === '2px' && width > 1 && height > 1),
      isFirst: focused === start,
    };
  }, first);

/** Goes through the page by Tab, behind its end, and up to its first stop. @returns the number of its stops, and the wrong ones. */
async function goThrough(page: Page): Promise<{ count: number; wrong: object[] }> {
  const wrong: object[] = [];
  const names: string[] = [];
  let first: JSHandle<Element | null> | null = null;
  let hasEnded = false;
  for (let presses = 0; presses < TABS_MAX; presses++) {
    await page.keyboard.press('Tab');
    const stop = await stopOf(page, first);
    if (stop?.isFirst && hasEnded) return { count: names.length, wrong };
    hasEnded ||= !stop;
    if (!stop) continue;
    first ??= await page.evaluateHandle(() => document.activeElement);
    names.push(stop.name);
    if (!stop.isSeen) wrong.push({ isUnseen: stop.name });
  }
  return { count: names.length, wrong: [...wrong, { isTrap: names.slice(-3) }] };
}

test('on every screen Tab leads through the page and back to its start, and each stop is visible', async () => {
  const page = await world.demoPage();
  const found: object[] = [];
  let stops = 0;
  for (const path of paths) {
    await page.goto(`${world.url}${path}`);
    await isShown(page);
    const { count, wrong } = await goThrough(page);
    stops += count;
    if (wrong.length > 0) found.push({ path, wrong });
  }
  expect(found).toEqual([]);
  expect(stops).toBeGreaterThan(paths.length * 20);
  await page.context().close();
});

test('in the portal too Tab leads through each page and back to its start', async () => {
  const webhookId = await world.makeWebhook('of the portal', 'http://127.0.0.1:9/hook');
  const { url } = await world.call<{ url: string }>('POST', '/v1/portal_links', {
    for: 'acme/keys',
    webhook_ids: [webhookId],
  });
  const page = await world.newPage();
  const [portal = ''] = url.split('#');
  const found: object[] = [];
  for (const address of [url, `${portal}/webhooks/${webhookId}`]) {
    await page.goto(address);
    await isShown(page);
    const { count, wrong } = await goThrough(page);
    if (wrong.length > 0 || count < PORTAL_STOPS_MIN) found.push({ address, count, wrong });
  }
  expect(found).toEqual([]);
  await page.context().close();
});
