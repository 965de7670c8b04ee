/** A webhook with 100,000 deliveries is scrolled, reloaded and filtered; its history is shown as numbers and bars. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { violationsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

const COUNT = 100_000;
/** The bar: rows in the document at any time. */
const ROW_COUNT_MAX = 60;
/** Within it a list would go on by itself. */
const STAYS_MS = 2_000;

// All deliveries are written before the first test, and a test waits for ten seconds again and again.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 300_000 });

let world: ConsoleUnderTest;
let webhookId: number;
beforeAll(async () => {
  world = await startConsole();
  webhookId = await world.makeWebhook('long', 'http://127.0.0.1:9/hook');
  const { database } = world.fleet;
  const key = sql`${DEMO.environmentId}, ${webhookId}`;
  await sql`
    with log as (
      insert into delivery_log (environment_id, webhook_id, sequence, occurred_at, event_id, event_type, body)
      select ${key}, n, now(), 'event-' || n, 'customer_subscribed', '{}' from generate_series(1, ${COUNT}) n
    ), attempts as (
      insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, status, outcome, failure)
      select ${key}, n, 1, 5, now(), case when n % 1000 = 0 then 500 else 200 end,
             case when n % 1000 = 0 then 'abandoned' else 'delivered' end, case when n % 1000 = 0 then 'status' end
        from generate_series(1, ${COUNT}) n
    )
    update lanes set last_sequence = ${COUNT}, cursor_sequence = ${COUNT}, attempted_sequence = ${COUNT}
     where environment_id = ${DEMO.environmentId} and webhook_id = ${webhookId}`.execute(database);
});
afterAll(() => world.close());

const list = (page: Page) => page.getByRole('region', { name: 'All deliveries, newest first' });
const numbersOf = (page: Page): Promise<string[]> => list(page).locator('tbody th').allInnerTexts();

test('End and PageDown reach the oldest of 100,000, with few rows drawn, and a reload shows the same place', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${webhookId}`);
  await list(page)
    .getByRole('button', { name: String(COUNT), exact: true })
    .waitFor();
  await page.getByText('100,000 deliveries').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  let most = 0;
  const look = async () => {
    most = Math.max(most, await list(page).locator('tbody tr').count());
  };
  await list(page).focus();
  for (let count = 0; count < 20; count++) {
    await page.keyboard.press('PageDown');
    await look();
  }
  await page.keyboard.press('End');
  await list(page).getByRole('button', { name: '1', exact: true }).waitFor();
  await look();
  // Both gaps are rows too.
  expect(most).toBeLessThanOrEqual(ROW_COUNT_MAX + 2);
  await page.waitForURL(/[?&]at=\d+/);
  const before = await numbersOf(page);
  await page.reload();
  await list(page).getByRole('button', { name: '1', exact: true }).waitFor();
  await expect.poll(() => numbersOf(page), WAIT).toEqual(before);

  await page.goto(`${world.url}/webhooks/${webhookId}?at=50000`);
  await list(page).getByRole('button', { name: '50000', exact: true }).click();
  await page.getByRole('heading', { name: /^Delivery 50000/ }).waitFor();
  await page.context().close();
});

test('Back leads from a scrolled list to the screen before it, and scrolling leaves the window in its place', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('link', { name: 'long', exact: true }).click();
  await list(page)
    .getByRole('button', { name: String(COUNT), exact: true })
    .waitFor();
  await list(page).focus();
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  for (let count = 0; count < 3; count++) {
    const before = page.url();
    await page.keyboard.press('PageDown');
    await page.waitForURL(({ href, searchParams }) => href !== before && searchParams.has('at'));
    expect(await page.evaluate(() => scrollY)).toBeGreaterThan(0);
  }
  await page.goBack();
  await page.waitForURL(`${world.url}/webhooks`);
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor();
  await page.context().close();
});

test('filtered deliveries are listed by pages, of one webhook and of all', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${webhookId}`);
  await page.getByLabel('Last answer').selectOption('5xx');
  await page.getByRole('button', { name: '100000', exact: true }).waitFor();
  const rows = page.getByRole('table', { name: 'Deliveries, newest first' }).locator('tbody tr');
  // The list of all has that delivery too.
  await expect.poll(() => rows.count(), WAIT).toBe(10);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.getByRole('button', { name: '90000', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Newest' }).click();
  await page.getByRole('button', { name: '100000', exact: true }).waitFor();

  // The first page looks through newer deliveries that do not fit, so the list goes on, and comes back by the button.
  await page.goto(`${world.url}/webhooks/${webhookId}?answer=3xx`);
  await page.getByRole('button', { name: 'Newest' }).waitFor();
  await page.waitForURL(({ searchParams }) => searchParams.has('start'));
  await page.getByRole('button', { name: 'Newest' }).click();
  await page.getByText('Older ones were not looked through yet').waitFor();
  await page.waitForTimeout(STAYS_MS);
  expect(new URL(page.url()).searchParams.has('start')).toBe(false);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.waitForURL(({ searchParams }) => searchParams.has('start'));

  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('link', { name: 'Deliveries of all' }).click();
  await page.getByLabel('Event (id)').fill('event-7');
  await page.getByRole('link', { name: `${webhookId} #7`, exact: true }).click();
  await page.getByRole('heading', { name: /^Delivery 7/ }).waitFor();
  await page.context().close();
});

test('deliveries of a time are found behind 40,000 newer ones by the address, which a reload and another viewer share', async () => {
  const { database } = world.fleet;
  await sql`
    update delivery_log set appended_at = '2020-02-03T04:05:06Z'
     where environment_id = ${DEMO.environmentId} and webhook_id = ${webhookId} and sequence = 55000`.execute(
    database,
  );
  const page = await world.demoPage({ timezoneId: 'Asia/Kolkata' });
  await page.goto(`${world.url}/webhooks/${webhookId}`);
  await page.getByLabel('Logged before (UTC)').fill('2020-02-03T04:06');
  await page.getByLabel('Logged since (UTC)').fill('2020-02-03T04:05');
  await page.waitForURL(({ searchParams }) => searchParams.get('since') === '2020-02-03T04:05');
  const rows = page.getByRole('table', { name: 'Deliveries, newest first' }).locator('tbody th');
  await expect.poll(() => rows.allInnerTexts(), WAIT).toEqual(['55000']);
  await page.reload();
  await expect.poll(() => rows.allInnerTexts(), WAIT).toEqual(['55000']);
  await page.getByLabel('Logged since (UTC)').fill('2020-02-03T04:06');
  await page.getByText('No delivery fits').waitFor();
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(request.url()));
  // The first digits of a year: 0020.
  await page.getByLabel('Logged since (UTC)').fill('0020-02-03T04:06');
  await page.getByLabel('Event (id)').fill('event-55000');
  await page.waitForURL(({ searchParams }) => searchParams.get('event') === 'event-55000');
  expect(new URL(page.url()).searchParams.get('since')).toBe('2020-02-03T04:06');
  expect(asked.filter((url) => url.includes('since=-'))).toEqual([]);

  // Among local times the fields are local too: India is 5:30 ahead.
  await page.goto(
    `${world.url}/webhooks/${webhookId}?since=2020-02-03T04:05&until=2020-02-03T04:06&tz=local`,
  );
  await expect.poll(() => rows.allInnerTexts(), WAIT).toEqual(['55000']);
  expect(await page.getByLabel('Logged since (local)').inputValue()).toBe('2020-02-03T09:35');
  await page.getByLabel('Logged since (local)').fill('2020-02-03T09:36');
  await page.getByText('No delivery fits').waitFor();
  expect(new URL(page.url()).searchParams.get('since')).toBe('2020-02-03T04:06');
  await page.context().close();
});

test('the last hour is a filter of the address, and its copied link has times instead', async () => {
  const page = await world.demoPage();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${world.url}/deliveries`);
  await page.getByLabel('Logged in the last').selectOption('1h');
  await page.waitForURL(({ searchParams }) => searchParams.get('last') === '1h');
  await page.getByRole('button', { name: 'Copy link' }).click();
  const read = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(read, WAIT).toContain('/deliveries?');
  const copied = new URL(await read());
  const at = (name: string) => Date.parse(`${copied.searchParams.get(name) ?? ''}Z`);
  expect(copied.pathname).toBe('/deliveries');
  expect(copied.searchParams.has('last')).toBe(false);
  expect(at('until') - at('since')).toBeGreaterThanOrEqual(3_600_000);
  // The list is read again until the link is copied.
  expect(at('until')).toBeLessThanOrEqual(Date.now() + 1_000);
  expect(copied.searchParams.get('workspace')).toBe(String(DEMO.environmentId));
  await page.goto(copied.href);
  const first = page.getByRole('link', { name: `${webhookId} #${COUNT}`, exact: true });
  await first.waitFor();
  await page.context().close();
});

test('a point shows newer rows, and Escape closes the open one and then leads up', async () => {
  const { database } = world.fleet;
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${webhookId}`);
  const newest = list(page).getByRole('button', { name: String(COUNT), exact: true });
  await newest.waitFor();
  await sql`
    with log as (
      insert into delivery_log (environment_id, webhook_id, sequence, occurred_at, event_id, event_type, body)
      values (${DEMO.environmentId}, ${webhookId}, ${COUNT + 1}, now(), 'newer', 'customer_subscribed', '{}')
    ), attempts as (
      insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, status, outcome)
      values (${DEMO.environmentId}, ${webhookId}, ${COUNT + 1}, 1, 5, now(), 200, 'delivered')
    )
    update lanes set last_sequence = ${COUNT + 1}, cursor_sequence = ${COUNT + 1}, attempted_sequence = ${COUNT + 1}
     where environment_id = ${DEMO.environmentId} and webhook_id = ${webhookId}`.execute(database);
  await page.getByRole('button', { name: '1 newer', exact: true }).waitFor();
  await page.keyboard.press('.');
  const added = list(page).getByRole('button', { name: String(COUNT + 1), exact: true });
  await added.click();
  const open = page.getByRole('heading', { name: `Delivery ${COUNT + 1}` });
  await open.waitFor();
  await page.keyboard.down('Escape');
  await open.waitFor({ state: 'detached' });
  // Held down, the key repeats.
  await page.keyboard.down('Escape');
  await page.keyboard.up('Escape');
  expect(await page.evaluate(() => location.pathname)).toBe(`/webhooks/${webhookId}`);
  await page.keyboard.press('Escape');
  await page.waitForURL(`${world.url}/webhooks`);
  await page.context().close();
});

test('applied operations, refused calls and deliveries are counted, in words and in a table', async () => {
  const receiver = await startReceiver();
  receiver.answer.status = 200;
  await world.makeWebhook('counted', receiver.url);
  await world.send('/v1/identify', {
    userId: 'counted',
    traits: { email: 'counted@example.com', unsubscribed: false },
  });
  await world.send('/v1/track', { event: 'nobody' }, false);
  await world.fleet.customer('counted').catch(() => undefined);
  const page = await world.demoPage();
  const chart = (text: RegExp) => page.getByRole('figure').filter({ hasText: text });
  // Workers write every ten seconds, and the page reads once.
  await expect
    .poll(
      async () => {
        await page.reload();
        await chart(/attempts to deliver succeeded/).waitFor();
        await chart(/operations were applied/).waitFor();
        return Promise.all(
          [
            /[1-9]\d* attempts to deliver succeeded in the last 24 hours/,
            /[1-9]\d* operations were applied/,
            /[1-9]\d* were refused/,
          ].map((text) => chart(text).count()),
        );
      },
      { timeout: 120_000, interval: 2_000 },
    )
    .toEqual([1, 1, 1]);
  const applied = chart(/operations were applied/);
  await applied.getByText('In numbers').click();
  // The browser reports the opening after the click.
  await expect.poll(() => applied.getByRole('row').count(), WAIT).toBeGreaterThanOrEqual(25);
  await page.goto(`${world.url}/billing/usage`);
  await chart(/[1-9]\d* operations were applied in the last 30 days/).waitFor();
  receiver.close();
  await page.context().close();
});
