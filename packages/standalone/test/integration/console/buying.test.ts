/**
 * Purchases in the console: credits, and a plan by card.
 *
 * Credits are bought at the price that was asked for, and paid on the page of the simulated payment provider. The plan
 * is paid by the card on file.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPurchaseServices, type PurchaseServices } from '../purchases/purchase-services.ts';
import { builtConsole } from './console-under-test.ts';
import { sharedBrowser } from './shared-browser.ts';

let services: PurchaseServices;
let browser: Browser;
beforeAll(async () => {
  const consoleDirectory = await builtConsole();
  [services, browser] = await Promise.all([
    startPurchaseServices(testRedisUrl(), undefined, { CONSOLE_DIRECTORY: consoleDirectory }),
    sharedBrowser(),
  ]);
});
afterAll(() => services.close());

/** Signed in by a token of the demo's account that pays by card, without a card on file. */
async function openBilling(): Promise<Page> {
  const made = await fetch(`${services.api.url}/v1/accounts/${DEMO.accountId}/api_credentials`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO.accountToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'service_account', name: 'Buyer', role: 'account_admin' }),
  });
  const { secret } = (await made.json()) as { secret: string };
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${services.api.url}/billing`);
  await page.getByRole('button', { name: 'Use a token' }).click();
  await page.getByLabel('Token of a service account').fill(secret);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Buy' }).waitFor();
  return page;
}

test('credits are bought once by a double click, paid at the provider’s page, and are there', async () => {
  const page = await openBilling();
  await page.getByLabel('How many llm credits').fill('1000');
  await page.getByRole('button', { name: 'Buy llm credits', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('The charge is made there, not before.').waitFor();
  const buy = dialog.getByRole('button', { name: /^Buy 1,000 llm credits for \$/ });
  await buy.dblclick({ noWaitAfter: true });
  await dialog.waitFor({ state: 'detached' });
  expect(services.paid()).toEqual([]);
  const rows = page.getByRole('table', { name: 'Purchases, the newest first' }).locator('tbody tr');
  await rows.first().getByRole('link').click();
  // The title follows the screen.
  await expect.poll(() => page.title(), { timeout: 30_000 }).toContain('Purchase');

  const [paying] = await Promise.all([
    page.context().waitForEvent('page'),
    page.getByRole('link', { name: 'Pay at the payment provider’s page' }).click(),
  ]);
  await paying.getByRole('button', { name: 'Pay by card' }).click();
  await paying.getByText('Paid.').waitFor();
  await page.getByText(/^\$[\d.,]+ were charged\.$/).waitFor({ timeout: 60_000 });
  const [receipt] = await Promise.all([
    page.context().waitForEvent('page'),
    page.getByRole('link', { name: 'Receipt' }).click(),
  ]);
  await receipt.getByText('Total').first().waitFor();
  await receipt.close();
  expect(services.paid()).toHaveLength(1);
  await page.goto(`${services.api.url}/billing/credits?type=llm`);
  await page.getByText('1,000', { exact: false }).first().waitFor();
  await page.context().close();
});

test('without a card on file, buying a plan shows an alert and charges no money', async () => {
  const before = services.paid().length;
  const page = await openBilling();
  await page.getByRole('button', { name: 'Buy Essentials by the month' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: /^Buy .* for \$/ }).click();
  await dialog.getByRole('alert').waitFor();
  expect(services.paid()).toHaveLength(before);
  await page.context().close();
});
