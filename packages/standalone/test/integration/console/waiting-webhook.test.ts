/**
 * An endpoint without deliveries, in the console.
 *
 * It shows the reason and the last answer, and sends again. Some tests use the keyboard alone.
 */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

/** A webhook whose first delivery fails, with others behind it. */
async function blockedWebhook(name: string, count = 3) {
  const receiver = await startReceiver();
  const id = await world.makeWebhook(name, receiver.url);
  const users = Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
  for (const user of users)
    await world.send('/v1/identify', {
      userId: user,
      traits: { email: `${user}@example.com`, unsubscribed: false },
    });
  await vi.waitFor(async () => {
    expect(receiver.bodies.length).toBeGreaterThan(0);
    const { rows } = await sql`
      select from delivery_log where webhook_id = ${id}`.execute(world.fleet.database);
    expect(rows).toHaveLength(count);
  }, WAIT);
  return { id, receiver };
}

test('an endpoint that answers 500 is explained in a sentence, and one click tries again', async () => {
  const { id, receiver } = await blockedWebhook('sentence');
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await page.getByRole('link', { name: 'sentence' }).click();
  await page.getByText(/^Delivery 1 gets 500 since .* UTC \(1 try\)\./).waitFor();
  await page.getByText('2 later ones wait behind it, in order.').waitFor();
  await page.getByText(/Next try in .*Given up on /).waitFor();

  await page.getByRole('link', { name: 'See its attempts' }).click();
  const answer = page.getByRole('region', { name: 'Body of the answer' });
  await answer.getByText('database down').waitFor();
  const address = page.url();

  receiver.answer.status = 200;
  receiver.answer.body = '{"ok":true}';
  await page.getByRole('button', { name: 'Try now' }).click();
  await page.getByText('Everything is delivered.').waitFor();
  await answer.getByText('"ok": true').waitFor();
  // The audit log has who pressed the button.
  const { rows } = await sql<{ email: string }>`
    select u.email from audit_logs l join users u using (account_id, user_id)
     where l.object_type = 'delivery' and l.actor_type = 'user'`.execute(world.fleet.database);
  expect(rows).toEqual([{ email: 'owner1@demo.example' }]);
  await page.goto(address);
  await page.getByRole('heading', { name: /^Delivery 1/ }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname, WAIT).toBe(`/webhooks/${id}`);
  receiver.close();
  await page.context().close();
});

test('a delivery is skipped only after its number was repeated, and the others go on', async () => {
  const { id, receiver } = await blockedWebhook('skipped');
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  const skip = page.getByRole('button', { name: 'Skip delivery 1 for ever' });
  await page.getByRole('button', { name: 'Skip delivery 1 …' }).click();
  await skip.waitFor();
  await page.keyboard.press('Escape');
  await skip.waitFor({ state: 'detached' });
  await page.getByText(/^Delivery 1 gets 500/).waitFor();
  receiver.answer.status = 200;
  await page.getByRole('button', { name: 'Skip delivery 1 …' }).click();
  await skip.click();
  await page.getByText('Everything is delivered.').waitFor();
  await page.getByLabel('State').selectOption('abandoned');
  await page.getByRole('row').filter({ hasText: 'abandoned' }).waitFor();
  // The list of all has a row of it too.
  await expect.poll(() => page.getByRole('row').count(), WAIT).toBe(2);
  receiver.close();
  await page.context().close();
});

test('a question about one delivery never skips the next one, which blocks the others meanwhile', async () => {
  const { id, receiver } = await blockedWebhook('next');
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Skip delivery 1 …' }).click();
  const skip = page.getByRole('button', { name: 'Skip delivery 1 for ever' });
  await skip.waitFor();
  // A colleague skips it first.
  await world.call('POST', `/v1/reporting_webhooks/${id}/skip_head`, { sequence: 1 });
  await page.getByText(/^Delivery 2 gets 500/).waitFor();
  const answer = page.waitForResponse(/skip_head/);
  await skip.click();
  expect((await answer).ok()).toBe(false);
  const { rows } = await sql<{ sequence: number }>`
    select sequence::int from delivery_attempts
     where webhook_id = ${id} and outcome = 'abandoned'`.execute(world.fleet.database);
  expect(rows).toEqual([{ sequence: 1 }]);
  receiver.close();
  await page.context().close();
});

test('a delivery is sent again by the keyboard alone, and a double press sends it once', async () => {
  const { id, receiver } = await blockedWebhook('again');
  receiver.answer.status = 200;
  const page = await world.demoPage();
  const make = page.getByRole('button', { name: 'Make a webhook', exact: true });
  await world.pressUntilShown(page, ['g', 'w'], make);
  await page.getByRole('link', { name: 'again' }).waitFor();
  const press = async (key: string, name: string): Promise<void> => {
    // A list shows its rows a moment after its page, and the presses do not wait for them.
    await page.waitForFunction(
      (text) =>
        [...document.querySelectorAll('a, button, [data-row]')].some(
          ({ textContent }) => textContent === text,
        ),
      name,
    );
    // Each time of the rows is a stop too.
    for (let count = 0; count < 120; count++) {
      if (await page.evaluate((text) => document.activeElement?.textContent === text, name)) return;
      await page.keyboard.press(key);
    }
    throw new Error(`${key} does not lead to ${name}`);
  };
  await press('j', 'again');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Try now' }).waitFor();
  await press('Tab', 'Try now');
  await page.keyboard.press('Enter');
  await page.getByText('Everything is delivered.').waitFor();
  await press('j', '2');
  await page.keyboard.press('Enter');
  const before = receiver.bodies.length;
  await page.getByRole('heading', { name: /^Delivery 2/ }).waitFor();
  await press('Tab', 'Send again');
  await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
  await page.getByText('resend').waitFor();
  await vi.waitFor(() => expect(receiver.bodies.length).toBeGreaterThan(before), WAIT);
  expect(
    new Set(receiver.bodies.map((body) => (JSON.parse(body) as { event_id: string }).event_id))
      .size,
  ).toBe(3);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from delivery_log
     where webhook_id = ${id} and origin = 'resend'`.execute(world.fleet.database);
  expect(rows).toEqual([{ count: 1 }]);
  receiver.close();
  await page.context().close();
});

test('a webhook is paused and resumed, and the page names the user who paused it', async () => {
  const { id, receiver } = await blockedWebhook('paused');
  receiver.answer.status = 200;
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText(/^Paused by Demo Owner on /).waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('Everything is delivered.').waitFor();
  await vi.waitFor(() => expect(receiver.bodies.length).toBeGreaterThan(3), WAIT);
  receiver.close();
  await page.context().close();
});

test('the rows of a list that is scrolled show their deliveries as they are now', async () => {
  // More than a page has.
  const { id, receiver } = await blockedWebhook('scrolled', 30);
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  const row = page
    .getByRole('region', { name: 'All deliveries, newest first' })
    .getByRole('row')
    .filter({ has: page.getByRole('button', { name: '30', exact: true }) });
  await row.getByText('pending').waitFor();
  receiver.answer.status = 200;
  await page.getByRole('button', { name: 'Try now' }).click();
  await row.getByText('delivered').waitFor();
  expect(await row.getByText('pending').count()).toBe(0);
  receiver.close();
  await page.context().close();
});

test('a webhook that a colleague has paused is resumed by one click', async () => {
  const id = await world.makeWebhook('of a colleague', 'http://127.0.0.1:9/hook');
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  await world.call('PUT', `/v1/reporting_webhooks/${id}`, { disabled: true });
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  const settings = await world.call<{ disabled: boolean }>('GET', `/v1/reporting_webhooks/${id}`);
  expect(settings.disabled).toBe(false);
  await page.context().close();
});

test('a webhook for one event of one’s own is made in the console, changed there, and is sent that event', async () => {
  const receiver = await startReceiver();
  receiver.answer.status = 200;
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('button', { name: 'Make a webhook' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('orders');
  await form.getByLabel('Endpoint (URL)').fill(receiver.url);
  await form.getByLabel(/^Only tracked events/).fill('order_placed');
  await form.getByLabel(/^Conditions that all must fit/).fill('data.properties.total gte 100');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'orders' }).click();
  await page.getByText('event order_placed').waitFor();

  const order = (total: number, messageId: string, event = 'order_placed') =>
    world.send('/v1/track', { userId: 'buyer', event, messageId, properties: { total } });
  await order(99, 'small');
  await order(100, 'large');
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(1), WAIT);
  expect(JSON.parse(receiver.bodies[0] ?? '')).toMatchObject({
    event_id: 'large',
    object_type: 'event',
    metric: 'order_placed',
    data: { properties: { total: 100 } },
  });

  await page.getByRole('button', { name: 'Change …' }).click();
  await form.getByLabel('Pages').check();
  await form.getByLabel(/^Only tracked events/).fill('');
  await form.getByRole('button', { name: 'Change it' }).click();
  await page.getByText('2 event types').waitFor();
  await order(100, 'another', 'order_paid');
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(2), WAIT);
  receiver.close();
  await page.context().close();
});

test('headers of a webhook are given, taken back, and not sent to another server', async () => {
  const [first, second] = await Promise.all([startReceiver(), startReceiver()]);
  first.answer.status = 200;
  second.answer.status = 200;
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('button', { name: 'Make a webhook' }).click();
  const form = page.getByRole('dialog');
  const headers = form.getByLabel(/^Headers of each request/);
  await form.getByLabel('Name', { exact: true }).fill('headed');
  await form.getByLabel('Endpoint (URL)').fill(first.url);
  await headers.fill('authorization');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form
    .getByRole('alert')
    .getByText(/^headers: each is a line/)
    .waitFor();
  await headers.fill('authorization: Bearer 0123456789abcdef\nx-team: shop');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'headed' }).click();

  const sendTest = page.getByRole('button', { name: 'Send a test' });
  const sentTo = async (receiver: typeof first, count: number) => {
    await sendTest.click();
    await vi.waitFor(() => expect(receiver.heads).toHaveLength(count), WAIT);
    return receiver.heads.at(-1);
  };
  expect(await sentTo(first, 1)).toMatchObject({
    authorization: 'Bearer 0123456789abcdef',
    'x-team': 'shop',
  });
  const change = async (fill: () => Promise<void>): Promise<void> => {
    await page.getByRole('button', { name: 'Change …' }).click();
    await fill();
    await form.getByRole('button', { name: 'Change it' }).click();
    await form.waitFor({ state: 'detached' });
  };
  await change(async () => {
    expect(await headers.inputValue()).toBe('authorization: ••••cdef\nx-team: ••••');
    await form.getByLabel('Endpoint (URL)').fill(second.url);
    await form.getByText('the stored values are not sent there').waitFor();
  });
  await page.getByText(second.url).first().waitFor();
  const sent = await sentTo(second, 1);
  expect(sent).not.toHaveProperty('authorization');
  expect(sent).not.toHaveProperty('x-team');

  await change(() => headers.fill('x-team: shop'));
  expect(await sentTo(second, 2)).toMatchObject({ 'x-team': 'shop' });
  await change(() => headers.fill(''));
  expect(await sentTo(second, 3)).not.toHaveProperty('x-team');
  first.close();
  second.close();
  await page.context().close();
});
