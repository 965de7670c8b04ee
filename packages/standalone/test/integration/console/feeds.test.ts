/**
 * The page of a feed in the console.
 *
 * It shows the events that a consumer would read, and their start.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const latestOf = async (name: string): Promise<number> => {
  const { feeds } = await world.call<{ feeds: { name: string; latest: string }[] }>(
    'GET',
    '/v1/feeds',
  );
  return Number(feeds.find((feed) => feed.name === name)?.latest.split('.')[1]);
};

test('without a feed the page explains one, and its samples work when they are pasted', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Feeds' }).click();
  await page.getByRole('heading', { name: 'There is no feed yet' }).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  const read = await page
    .getByRole('region', { name: 'Its events, from the oldest on' })
    .textContent();
  expect(read).toContain('/v1/feeds/warehouse?cursor=');
  await world.paste(page.getByRole('region', { name: 'A feed, by a call' }));
  await page.getByRole('link', { name: 'warehouse' }).click();
  await page.getByRole('heading', { name: 'There is no later event yet' }).waitFor();
  await world.send('/v1/track', { userId: 'ada', event: 'order_placed', messageId: 'read-1' });
  await page.getByText('order_placed').waitFor();
  const sample = page.getByRole('region', { name: /^A page by a call/ });
  expect(JSON.parse(await world.paste(sample))).toMatchObject({
    events: [{ event_type: 'event', event: { event_id: 'read-1' } }],
  });
  await page.context().close();
});

test('a feed is made, read a page at a time, changed, and deleted by its name', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/feeds`);
  await page.getByRole('button', { name: 'Make a feed', exact: true }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel(/^Name/).fill('Orders');
  await form.getByLabel(/^Only tracked events/).fill('order_placed');
  await form.getByLabel(/^Conditions that all must fit/).fill('data.properties.total gte 100');
  await form.getByRole('button', { name: 'Make the feed' }).click();
  await form.getByRole('alert').getByText('the object of the path was not found').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await form.getByLabel(/^Name/).fill('orders');
  await form.getByRole('button', { name: 'Make the feed' }).click();
  await page.getByRole('link', { name: 'orders' }).waitFor();
  for (let number = 0; number < 25; number++)
    await world.send('/v1/track', {
      userId: 'buyer',
      event: 'order_placed',
      messageId: `order-${number}`,
      properties: { total: number < 2 ? 99 : 100 },
    });
  await vi.waitFor(async () => expect(await latestOf('orders')).toBe(23), WAIT);
  await page.getByRole('link', { name: 'orders' }).click();
  await page.getByText('event order_placed').waitFor();
  const rows = page.getByRole('button', { name: /^\d+\.\d+$/ });
  await vi.waitFor(async () => expect(await rows.count()).toBe(20), WAIT);
  await rows.first().click();
  const event = page.getByRole('region', { name: /^The event, as a webhook gets it/ });
  await event.getByText('"order-2"').first().waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await page.reload();
  await event.getByText('"order-2"').first().waitFor();
  await page.getByRole('button', { name: 'Next page' }).click();
  await vi.waitFor(async () => expect(await rows.count()).toBe(3), WAIT);
  await expect
    .poll(() => new URL(page.url()).searchParams.get('cursor'), WAIT)
    .toMatch(/^\d+\.20$/);
  await page.goBack();
  await vi.waitFor(async () => expect(await rows.count()).toBe(20), WAIT);

  await page.getByRole('button', { name: 'Change …' }).click();
  await form.getByLabel('Pages').check();
  await form.getByRole('button', { name: 'Change it' }).click();
  await page.getByText('2 event types').waitFor();
  // Unchanged conditions stay.
  const { feeds } = await world.call<{ feeds: { name: string }[] }>('GET', '/v1/feeds');
  expect(feeds.find(({ name }) => name === 'orders')).toMatchObject({
    events: ['event', 'page'],
    event_names: ['order_placed'],
    attribute_filters: [{ field: 'data.properties.total', operator: 'gte', values: ['100'] }],
  });
  await page.getByRole('button', { name: 'Delete …' }).click();
  await form.getByRole('textbox').fill('orders');
  await form.getByRole('button', { name: 'Delete the feed' }).click();
  await page.getByRole('heading', { name: 'Feeds' }).waitFor();
  await page.getByRole('link', { name: 'orders' }).waitFor({ state: 'detached' });
  await page.context().close();
});

test('a cursor from before a feed was made anew shows an alert and a button to the oldest event', async () => {
  await world.call('PUT', '/v1/feeds/anew', { events: ['event'] });
  const { feeds } = await world.call<{ feeds: { name: string; latest: string }[] }>(
    'GET',
    '/v1/feeds',
  );
  const before = feeds.find(({ name }) => name === 'anew')?.latest;
  await world.call('DELETE', '/v1/feeds/anew');
  await world.call('PUT', '/v1/feeds/anew', { events: ['event'] });
  const page = await world.demoPage();
  await page.goto(`${world.url}/feeds/anew?cursor=${before}`);
  await page.getByRole('alert').getByText('are deleted').waitFor();
  await page.getByRole('button', { name: 'From the oldest' }).click();
  await page.getByRole('heading', { name: 'There is no later event yet' }).waitFor();
  await expect.poll(() => new URL(page.url()).search, WAIT).toBe('');
  await page.context().close();
});
