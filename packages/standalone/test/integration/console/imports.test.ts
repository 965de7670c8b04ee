/**
 * A file in the console.
 *
 * It is chosen, sent and watched there, and its wrong rows are fetched.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('a file is checked before it is sent, imported, and its wrong rows are downloaded', async () => {
  expect(await world.send('/v1/identify', { userId: 'ada', traits: { plan: 'free' } })).toBe(200);
  await world.send('/v1/track', { userId: 'ada', event: 'Before' });
  await world.fleet.event('ada', 'Before');
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Imports' }).click();
  const choose = (name: string, text: string) =>
    page
      .getByLabel('File')
      .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });
  await choose('wrong.csv', 'name,person\n');
  await page.getByText('The first line lacks _svc_name and _svc_customer_id.').waitFor();
  await choose('orders.csv', '_svc_name;_svc_customer_id;total\nOrdered;ada;12\nOrdered;;3\n');
  await page.getByText('Columns: _svc_name, _svc_customer_id, total.').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  const row = page.getByRole('row').filter({ hasText: 'orders.csv' });
  await row.getByText('imported', { exact: true }).waitFor();
  await world.fleet.event('ada', 'Ordered');
  // Its own page has an address that a colleague can open.
  await row.getByRole('link', { name: 'orders.csv' }).click();
  const shown = page.getByRole('region', { name: 'The import' });
  await shown.getByText('orders.csv').waitFor();
  expect(new URL(page.url()).pathname).toMatch(/^\/imports\/\d+$/);
  await page.reload();
  await shown.getByRole('button', { name: '1 errors' }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Imports' }).click();
  await row.getByRole('button', { name: '1 errors' }).click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    row.getByRole('link', { name: 'Download 1 errors' }).click(),
  ]);
  expect(await readFile(await download.path(), 'utf8')).toContain('_svc_customer_id');
  await page.context().close();
});
