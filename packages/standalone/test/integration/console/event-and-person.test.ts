/** An event and a person in the console, by two clicks each. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { violationsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';
import { WAIT } from '../fleet-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

/** Values that somebody else may put into an event, to be shown and not to be run. */
const HOSTILE = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>\u202e\u0007`;

test('the id of an event, pasted into the palette, opens a page that shows its progress', async () => {
  const page = await world.demoPage();
  await world.pressUntilShown(page, ['Control+k'], page.getByRole('dialog', { name: 'Go to' }));
  await page.keyboard.insertText('not-sent-yet');
  await page.getByRole('option', { name: 'Event not-sent-yet' }).click();
  await page.getByText('No event with this id is known here yet').waitFor();

  await world.send('/v1/track', {
    userId: 'grace',
    event: 'Late order',
    messageId: 'not-sent-yet',
    properties: { sku: 'b' },
  });
  // The page looks again by itself.
  await page.getByRole('heading', { name: 'Late order' }).waitFor();
  await page.getByText('No webhook reports it.').waitFor();
  await page.getByRole('region', { name: 'Data of the event' }).getByText('"sku"').waitFor();
  const paths = page.getByRole('button', { name: 'Paths of Data of the event' });
  const raw = page.locator('.json').filter({ has: paths }).getByRole('button', { name: 'Raw' });
  expect(await raw.count()).toBe(1);
  await paths.click();
  // It is of the text alone.
  await raw.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^Copy the path (?:\w+\.)*sku$/ }).waitFor();
  await page.getByLabel('Find in Data of the event').fill('not there');
  await page.getByText(/^0 of \d+$/).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Paths of Data of the event' }).click();
  await page.getByRole('link', { name: /^Person / }).click();
  await page.getByRole('heading', { name: 'grace' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname, WAIT).toMatch(/^\/people\/\w+$/);
  await page.context().close();
});

test('a person has attributes with their changes, activity, relationships and devices', async () => {
  const traits = { email: 'lin@example.com', plan: 'pro', unsubscribed: false };
  await world.send('/v1/identify', { userId: 'lin', traits });
  await world.fleet.event('grace', 'Late order');
  await world.send('/v1/identify', { userId: 'lin', traits: { plan: 'free' } });
  await world.send('/v1/track', { userId: 'lin', event: 'Order Completed', messageId: 'lin-1' });
  await world.send('/v1/group', { userId: 'lin', groupId: 'acme', traits: { name: 'Acme' } });
  await world.fleet.event('lin', 'Order Completed');

  const page = await world.demoPage();
  await page.getByRole('link', { name: 'People' }).click();
  await page.getByLabel('Begins with').fill('LIN@');
  await page.getByRole('link', { name: 'grace', exact: true }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'lin', exact: true }).waitFor();
  // The heads of the columns, and this one person.
  await expect.poll(() => page.getByRole('row').count(), { timeout: 20_000 }).toBe(2);
  await page.getByLabel('Identifier').fill('lin@example.com');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'lin' }).waitFor();
  await page.getByText('plan pro → free').waitFor();
  await page.getByRole('button', { name: 'plan', exact: true }).click();
  const history = page.getByRole('list', { name: 'Earlier values of plan' });
  await history.getByText('pro → free').waitFor();
  expect(await history.getByRole('listitem').count()).toBe(1);
  await page.getByRole('button', { name: 'plan', exact: true }).click();
  await page.getByRole('button', { name: 'Relationships' }).click();
  await page.getByText('acme', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Devices 0' }).click();
  await page.getByText('No device').waitFor();
  await page.goBack();
  await page.getByText('acme', { exact: true }).waitFor();
  await expect.poll(() => new URL(page.url()).search, WAIT).toBe('?by=email&tab=relationships');
  await page.context().close();
});

test('the palette finds a person by a pasted svc_id, and a person whose id no path can name', async () => {
  for (const userId of ['vera', '..']) await world.send('/v1/identify', { userId });
  const found = async (id: string): Promise<string | undefined> => {
    const { results } = await world.call<{ results: { svc_id: string }[] }>(
      'GET',
      `/v1/customers?query=${id}`,
    );
    return results[0]?.svc_id;
  };
  for (const id of ['vera', '..']) await expect.poll(() => found(id), WAIT).toBeDefined();
  const page = await world.demoPage();
  for (const [id, pasted] of [
    ['vera', await found('vera')],
    ['..', '..'],
  ] as const) {
    await world.pressUntilShown(page, ['Control+k'], page.getByRole('dialog', { name: 'Go to' }));
    await page.keyboard.insertText(pasted!);
    await page.getByRole('option', { name: `People who begin with ${pasted}` }).click();
    await page.getByRole('link', { name: id, exact: true }).click();
    await page.getByRole('heading', { name: id, exact: true }).waitFor();
    await expect.poll(() => new URL(page.url()).pathname, WAIT).toMatch(/^\/people\/a3/);
  }
  await page.context().close();
});

test('names and attributes from callers are shown as text, with visible control characters', async () => {
  await world.send('/v1/identify', {
    userId: 'mallory',
    traits: { email: 'mallory@example.com', note: HOSTILE },
  });
  await world.send('/v1/track', { userId: 'mallory', event: HOSTILE, messageId: 'hostile-1' });
  await world.fleet.event('mallory', HOSTILE.trim());
  const page = await world.demoPage();
  for (const path of ['/people/mallory', '/events/hostile-1']) {
    await page.goto(`${world.url}${path}`);
    await page.getByText('<img src=x onerror=').first().waitFor();
    expect(await page.locator('main').textContent()).toContain(String.raw`\u202e`);
    expect(await page.locator('img, main script').count()).toBe(0);
    expect(await page.title()).not.toBe('taken');
  }
  await page.context().close();
});

test.each([
  ['/webhooks/999999', 'Webhooks'],
  ['/people/nobody', 'People'],
  ['/keys/999999', 'Keys'],
  ['/audit/999999', 'Audit log'],
  ['/billing/purchases/run_nobody', 'Billing'],
])('%s is gone: the reason is shown, and a link leads to %s', async (path, list) => {
  const page = await world.demoPage();
  await page.goto(`${world.url}${path}`);
  await page.getByRole('alert').getByText('not found').waitFor();
  await page.locator('main').getByRole('link', { name: list, exact: true }).click();
  await page.getByRole('heading', { name: list, exact: true }).waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  await page.context().close();
});

test('the page of people removes a parameter without a meaning from its address', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/people?by=nonsense&more=1`);
  await page.getByRole('heading', { name: 'People' }).waitFor();
  // The address follows the screen.
  await expect.poll(() => new URL(page.url()).search, WAIT).toBe('');
  await page.context().close();
});

test('a screen that is refused reads again when the API wants it, and not before', async () => {
  await world.send('/v1/track', { userId: 'busy', event: 'Asked' });
  await world.fleet.event('busy', 'Asked');
  const page = await world.demoPage();
  await page.clock.install();
  await page.goto(`${world.url}/people/busy`);
  await page.getByRole('heading', { name: 'busy' }).waitFor();
  let refusedCount = 0;
  await page.route(/\/v1\/customers\/busy\/attributes/, (route) => {
    refusedCount++;
    return route.fulfill({ status: 429, headers: { 'retry-after': '60' }, body: '{}' });
  });
  const passUntil = async (count: number) => {
    for (let passedMs = 0; refusedCount < count; passedMs += 1_000) {
      await page.clock.runFor(1_000);
      // A request that has begun is counted before the next second.
      await page.evaluate(() => fetch('/livez'));
      if (passedMs > 90_000) throw new Error(`${refusedCount} reads in 90 s`);
    }
    return page.evaluate(() => Date.now());
  };
  const firstAtMs = await passUntil(1);
  const secondAtMs = await passUntil(2);
  expect(secondAtMs - firstAtMs).toBeGreaterThanOrEqual(58_000);
  await page.context().close();
});
