/**
 * Options of a webhook, set and seen in the console.
 *
 * They are its signature, rate, order, credentials and end.
 */
import {
  CLIENT_AUTHORITY,
  CLIENT_ONE_CERTIFICATE,
  CLIENT_ONE_KEY,
  CLIENT_TWO_CERTIFICATE,
  CLIENT_TWO_KEY,
} from '@sluice/platform/testing/client-certificates';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { LOCAL_CERTIFICATE } from '../local-certificate.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';
import { startGuardedReceiver } from './guarded-receiver.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('without a webhook the page explains one, and its sample makes the first one, for order_placed', async () => {
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

test('client certificate, authority and OAuth2 client are given, kept by empty fields, replaced and removed; no secret is shown', async () => {
  const receiver = await startGuardedReceiver(CLIENT_AUTHORITY);
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('button', { name: 'Make a webhook', exact: true }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('guarded');
  await form.getByLabel('Endpoint (URL)').fill(`${receiver.url}/hook`);
  await form.getByLabel(/^Only tracked events/).fill('order_guarded');
  await form.getByText('Proof of the sender').click();
  await form.getByLabel(/^Client certificate/).fill(CLIENT_ONE_CERTIFICATE);
  await form.getByLabel(/^Private key/).fill(CLIENT_TWO_KEY);
  await form.getByLabel(/^Authorities/).fill(LOCAL_CERTIFICATE);
  await form.getByLabel('OAuth2: address that issues tokens').fill(`${receiver.url}/token`);
  await form.getByLabel('OAuth2: client id').fill('shop');
  await form.getByLabel('OAuth2: client secret').fill('secret-of-the-shop');
  await form.getByLabel('OAuth2: scope').fill('hooks');
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.getByRole('alert').getByText('client_certificate.private_key').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await form.getByLabel(/^Private key/).fill(CLIENT_ONE_KEY);
  await form.getByRole('button', { name: 'Make the webhook' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'guarded' }).click();
  await page
    .getByText(
      'client certificate CN=client one, until 2124-01-01; authority CN=Sluice test; OAuth2 client shop',
    )
    .waitFor();
  const order = async (messageId: string, count: number) => {
    await world.send('/v1/track', { userId: 'buyer', event: 'order_guarded', messageId });
    await vi.waitFor(() => expect(receiver.deliveries).toHaveLength(count), WAIT);
    return receiver.deliveries.at(-1);
  };
  expect(await order('first', 1)).toEqual({ client: 'client one', token: 'Bearer token-of-shop' });

  const change = page.getByRole('button', { name: 'Change …' });
  await change.click();
  await form.getByText(/^Stored: CN=client one, until 2124-01-01, SHA-256 /).waitFor();
  expect(await form.getByLabel('OAuth2: client id').inputValue()).toBe('shop');
  expect(await form.getByLabel('OAuth2: client secret').inputValue()).toBe('');
  expect(await page.content()).not.toContain('secret-of-the-shop');
  expect(await page.content()).not.toContain('PRIVATE KEY-----\n');
  expect(await problemsOf(page)).toEqual([]);
  // Empty input: all three stay.
  await form.getByLabel('Name', { exact: true }).fill('guarded still');
  await form.getByRole('button', { name: 'Change it' }).click();
  await page.getByRole('heading', { name: 'guarded still' }).waitFor();
  expect(await order('kept', 2)).toEqual({ client: 'client one', token: 'Bearer token-of-shop' });

  // A part of the OAuth2 client goes with its secret alone.
  await change.click();
  await form.getByLabel('OAuth2: client id').fill('other');
  await form.getByRole('button', { name: 'Change it' }).click();
  await form.getByRole('alert').getByText('oauth2.client_secret').waitFor();
  await form.getByLabel('OAuth2: client secret').fill('secret-of-the-other');
  await form.getByLabel(/^Client certificate/).fill(CLIENT_TWO_CERTIFICATE);
  await form.getByLabel(/^Private key/).fill(CLIENT_TWO_KEY);
  await form.getByRole('button', { name: 'Change it' }).click();
  await page.getByText(/client certificate CN=client two.*OAuth2 client other$/).waitFor();
  expect(await order('replaced', 3)).toEqual({
    client: 'client two',
    token: 'Bearer token-of-other',
  });

  await change.click();
  await form.getByLabel('Remove the OAuth2 client').check();
  await form.getByRole('button', { name: 'Change it' }).click();
  await page.getByText(/client certificate CN=client two.*authority CN=Sluice test$/).waitFor();
  expect(await order('without a token', 4)).toEqual({ client: 'client two', token: undefined });
  receiver.close();
  await page.context().close();
});
