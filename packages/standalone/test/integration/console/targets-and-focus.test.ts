/** Targets and focus of each screen, and the live tail with lines. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { problemsOf } from './accessibility.ts';
import type { ConsoleUnderTest } from './console-under-test.ts';
import { isShown, startScreens } from './screens-under-test.ts';

// A test opens three dozen screens, one after another.
vi.setConfig({ testTimeout: 600_000 });

const TARGET_PX_MIN = 24;
/** Presses of Tab on a screen: past its menu, into its list. */
const TABS = 50;

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

test('the focus is visible at each stop of the keyboard on every screen', async () => {
  const page = await world.demoPage();
  const unseen: object[] = [];
  let stops = 0;
  for (const path of paths) {
    await page.goto(`${world.url}${path}`);
    await isShown(page);
    for (let tab = 0; tab < TABS; tab++) {
      await page.keyboard.press('Tab');
      const stop = await page.evaluate(() => {
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
        };
      });
      if (!stop) break;
      stops++;
      if (!stop.isSeen) unseen.push({ path, ...stop });
    }
  }
  expect(unseen).toEqual([]);
  expect(stops).toBeGreaterThan(paths.length * 20);
  await page.context().close();
});
