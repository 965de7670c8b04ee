/** How is this webhook signed, how fast, in which order, and when is it given up? Set and seen in the console. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('without a webhook the page says what one is, and its sample makes the first one, for order_placed', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Webhooks' }).first().click();
  await page.getByRole('heading', { name: 'There is no webhook yet' }).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await world.paste(page.getByRole('region', { name: 'A webhook for each order, by a call' }));
  await page.getByRole('link', { name: 'Orders' }).waitFor();
  await page.getByText('event order_placed').waitFor();
  await page.context().close();
});

test('a webhook is made with a signature, a rate, an order and days of its own; the receiver sees the signature', async () => {
  const receiver = await startReceiver();
  receiver.answer.status = 200;
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('button', { name: 'Make a webhook', exact: true }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('chosen');
  await form.getByLabel('Endpoint (URL)').fill(receiver.url);
  await form.getByLabel(/^Only tracked events/).fill('order_placed');
  await form.getByText('How it is sent').click();
  await form.getByLabel('Signature').selectOption({ label: 'Standard Webhooks alone' });
  await form.getByLabel(/^Requests a second/).fill('fast');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.getByRole('alert').getByText('rate_limit_per_second').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await form.getByLabel(/^Requests a second/).fill('50');
  await form.getByLabel('Order', { exact: true }).selectOption('strict');
  await form.getByLabel(/^Disable it after/).fill('3');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'chosen' }).click();
  await page
    .getByText(
      'signature: Standard Webhooks alone; at most 50 a second; in strict order; disabled after 3 days of failure',
    )
    .waitFor();
  const order = (messageId: string) =>
    world.send('/v1/track', { userId: 'buyer', event: 'order_placed', messageId });
  await order('signed');
  await vi.waitFor(() => expect(receiver.heads).toHaveLength(1), WAIT);
  expect(receiver.heads[0]).toHaveProperty('webhook-signature');
  expect(receiver.heads[0]).not.toHaveProperty('x-svc-signature');

  await page.getByRole('button', { name: 'Change …' }).click();
  expect(await form.getByLabel(/^Disable it after/).inputValue()).toBe('3');
  await form.getByLabel('Signature').selectOption('both');
  await form.getByLabel(/^Requests a second/).fill('');
  await form.getByRole('button', { name: 'Change it' }).click();
  await form.waitFor({ state: 'detached' });
  await page
    .getByText(/^signature: x-svc-signature, and Standard Webhooks beside it; in/)
    .waitFor();
  await order('signed by both');
  await vi.waitFor(() => expect(receiver.heads).toHaveLength(2), WAIT);
  expect(receiver.heads[1]).toHaveProperty('webhook-signature');
  expect(receiver.heads[1]).toHaveProperty('x-svc-signature');

  await page.getByRole('button', { name: 'Delete …' }).click();
  await form.getByRole('textbox').fill('chosen');
  await form.getByRole('button', { name: 'Delete the webhook' }).click();
  await page.getByRole('heading', { name: 'Webhooks' }).waitFor();
  await page.getByRole('link', { name: 'chosen' }).waitFor({ state: 'detached' });
  receiver.close();
  await page.context().close();
});
