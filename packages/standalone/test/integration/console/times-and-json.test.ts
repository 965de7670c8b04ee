/** Times and JSON on the screens, by mouse and keyboard; ranges of lists in the address; muted issues. */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { violationsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
  await world.send('/v1/track', { event: 'x' }, false);
});
afterAll(() => world.close());

const openDemo = () =>
  world.demoPage({ permissions: ['clipboard-read', 'clipboard-write'], timezoneId: 'Asia/Tokyo' });
const copiedOn = (page: Page): Promise<string> =>
  page.evaluate(() => navigator.clipboard.readText());
const issueRows = (page: Page): Locator => page.locator('tbody tr:not(.detail)');

test('a time is copied as ISO 8601 by a click and by Enter, and its row stays closed', async () => {
  const page = await openDemo();
  await page.goto(`${world.url}/issues`);
  const time = issueRows(page).locator('time').first();
  await time.waitFor();
  const iso = (await time.getAttribute('datetime'))!;
  expect(new Date(iso).toISOString()).toBe(iso);
  await time.click();
  await expect.poll(() => copiedOn(page), WAIT).toBe(iso);
  await page.evaluate(() => navigator.clipboard.writeText('another text'));
  await page.locator('[data-row]').first().focus();
  await page.keyboard.press('Tab');
  expect(await time.evaluate((element) => element === document.activeElement)).toBe(true);
  // Its age, the time in the other zone, and Unix milliseconds.
  expect(await time.getAttribute('title')).toMatch(
    new RegExp(String.raw`^(?:now|.* ago) · .* \+09:00 · ${Date.parse(iso)} · `),
  );
  await page.keyboard.press('Enter');
  await expect.poll(() => copiedOn(page), WAIT).toBe(iso);
  expect(await page.locator('main [aria-expanded="true"]').count()).toBe(0);
  await page.context().close();
});

test('parts of JSON are folded, unfolded and copied by keyboard', async () => {
  const items = [{ sku: 'a' }, { sku: 'b' }];
  await world.send('/v1/track', {
    ...{ userId: 'ada', event: 'Order', messageId: 'json-1' },
    properties: { total: 12, items },
  });
  await world.fleet.event('ada', 'Order');
  const page = await openDemo();
  await page.goto(`${world.url}/events/json-1`);
  const shown = page.getByRole('region', { name: 'Data of the event' });
  const tree = shown.getByRole('tree');
  const chosen = tree.locator('[aria-selected="true"]');
  const sku = shown.getByText('"sku": "a"');
  await sku.waitFor();
  await tree.focus();
  await page.keyboard.press('Home');
  while (!(await chosen.textContent())?.includes('"items": ['))
    await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowLeft');
  await shown.getByText('"items": [ … 2 ]').waitFor();
  expect(await sku.count()).toBe(0);
  expect(await chosen.getAttribute('aria-expanded')).toBe('false');
  expect(await violationsOf(page)).toEqual([]);

  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(() => copiedOn(page), WAIT).toMatch(/^(?:\w+\.)?items$/);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(async () => JSON.parse(await copiedOn(page)) as unknown, WAIT).toEqual(items);

  await tree.focus();
  // Unfolds; then goes to the first item and to its first part.
  for (const _ of [1, 2, 3]) await page.keyboard.press('ArrowRight');
  await sku.waitFor();
  expect((await chosen.textContent())?.trim()).toBe('"sku": "a"');
  await page.context().close();
});

test('a part of a delivered body filters the list of deliveries', async () => {
  const webhookId = await world.makeWebhook('filtered', 'http://127.0.0.1:9/hook');
  for (const userId of ['jo', 'kim'])
    await world.send('/v1/identify', {
      userId,
      traits: { email: `${userId}@example.com`, unsubscribed: false },
    });
  const page = await openDemo();
  await page.goto(`${world.url}/webhooks/${webhookId}?delivery=1`);
  const body = page.getByRole('region', { name: /^Body that was sent/ });
  await body.getByText('"event_id"').click();
  const filter = page.getByRole('link', { name: 'Filter by this' });
  const { searchParams } = new URL((await filter.getAttribute('href'))!, world.url);
  await filter.click();
  const rows = page.getByRole('table', { name: /Deliveries/ }).locator('tbody tr');
  await expect.poll(() => rows.count(), WAIT).toBe(1);
  expect(new URL(page.url()).searchParams.get('event')).toBe(searchParams.get('event'));
  await page.context().close();
});

test('a part of a live line filters the live tail', async () => {
  const page = await openDemo();
  await page.goto(`${world.url}/live`);
  const row = page.getByRole('button', { name: 'Filtered order' }).first();
  await world.sendUntilShown(row, () =>
    world.send('/v1/track', { userId: 'ada', event: 'Filtered order' }),
  );
  await row.click();
  await page.getByRole('tree').getByText('"name": "Filtered order"').first().click();
  await page.getByRole('link', { name: 'Filter by this' }).click();
  await page.waitForURL((url) => url.searchParams.get('name') === 'Filtered order');
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Filtered order');
  await world.sendUntilShown(row, () =>
    world.send('/v1/track', { userId: 'ada', event: 'Filtered order' }),
  );
  await row.click();
  await page.getByRole('tree').getByText('"source": "pipelines.track"').first().click();
  await page.getByRole('link', { name: 'Filter by this' }).click();
  await page.waitForURL((url) => url.searchParams.get('source') === 'pipelines.track');
  await world.sendUntilShown(row, () =>
    world.send('/v1/track', { userId: 'ada', event: 'Filtered order' }),
  );
  await page.context().close();
});

test('an issue is muted in this browser and shown again, and the browser keeps no text of it', async () => {
  const page = await openDemo();
  await page.goto(`${world.url}/issues`);
  await issueRows(page).first().waitFor();
  const count = await issueRows(page).count();
  const code = (await page.locator('[data-row]').first().textContent())!;
  await page.locator('[data-row]').first().focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Mute in this browser' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText(/of this page (?:is|are) muted in this browser/).waitFor();
  expect(await issueRows(page).count()).toBeLessThan(count);
  const stored = await page.evaluate(() => JSON.stringify(localStorage));
  expect(stored).toContain('sluice.muted');
  expect(stored).not.toContain(code);

  await page.reload();
  await page.getByRole('button', { name: 'Show muted' }).click();
  await expect.poll(() => issueRows(page).count(), WAIT).toBe(count);
  await issueRows(page).filter({ hasText: 'muted' }).locator('[data-row]').first().click();
  await page.getByRole('button', { name: 'Unmute' }).click();
  await page.getByText('muted in this browser.').waitFor({ state: 'detached' });
  await page.goto(`${world.url}/issues`);
  await expect.poll(() => issueRows(page).count(), WAIT).toBe(count);
  await page.context().close();
});

// The sentence was the one of a workspace without issues.
test('the overview shows that the latest issues are muted, not that no call was refused', async () => {
  const page = await openDemo();
  await page.goto(`${world.url}/issues`);
  await issueRows(page).first().waitFor();
  for (let count = await issueRows(page).count(); count > 0; count--) {
    await page.locator('[data-row]').first().click();
    await page.getByRole('button', { name: 'Mute in this browser' }).click();
    await expect.poll(() => issueRows(page).count(), WAIT).toBe(count - 1);
  }
  await page.goto(`${world.url}/`);
  await page.getByText('The latest issues are muted.').waitFor();
  expect(await page.getByText('No call was refused or corrected.').count()).toBe(0);
  await page.context().close();
});

test.each([
  ['/audit', 'In the last', 'No change matches'],
  ['/issues', 'Seen in the last', 'No issue matches'],
] as const)('%s has a range up to now, and its link has times', async (path, label, nothing) => {
  const page = await openDemo();
  await page.goto(`${world.url}${path}`);
  const row = page.locator('tbody [data-row]').first();
  await row.waitFor();
  await page.getByLabel(label).selectOption('1h');
  await page.waitForURL((url) => url.searchParams.get('last') === '1h');
  await row.waitFor();
  await page.getByRole('button', { name: 'Copy link' }).click();
  await expect.poll(() => copiedOn(page), WAIT).toContain(path);
  const link = new URL(await copiedOn(page));
  expect(link.searchParams.has('last')).toBe(false);
  const times = [...link.searchParams.values()].filter((text) => /^\d{4}-\d\d-\d\dT/.test(text));
  expect(times).toHaveLength(2);

  // Two hours later the range has moved on, and the link has not.
  await page.clock.setFixedTime(Date.now() + 7_200_000);
  await page.reload();
  await page.getByText(nothing).waitFor();
  await page.goto(link.href);
  await row.waitFor();
  await page.context().close();
});
