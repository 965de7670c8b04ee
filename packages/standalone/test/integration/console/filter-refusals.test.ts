/** Filters. A text that the list cannot filter by is refused beside the field, and has no effect. A day is whole. */
import { recordChange } from '@sluice/database/changes/record-change';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => void (world = await startConsole()));
afterAll(() => world.close());

test.each([
  ['/audit', 'User', 'user', 'ada@example.com', '1'],
  ['/audit', 'Address', 'ip', '10.0.0.0/8', '10.0.'],
  ['/live', 'Webhook', 'webhook', 'CRM', '2'],
  ['/deliveries', 'Type', 'type', 'Customer_Subscribed', 'customer_subscribed'],
  ['/issues', 'Code', 'code', 'x'.repeat(501), 'invalid'],
])('%s: %s refuses an unfit text and takes a fit one', async (path, label, name, unfit, fit) => {
  const page = await world.demoPage();
  const given = () => new URL(page.url()).searchParams.get(name);
  await page.goto(`${world.url}${path}`);
  const field = page.getByLabel(label, { exact: true });
  await field.fill(unfit);
  const refusal = page.getByRole('alert').filter({ hasText: `Not applied: ${label} takes` });
  await refusal.waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  expect(await field.getAttribute('aria-describedby')).toBe(await refusal.getAttribute('id'));
  await field.press('Enter');
  expect(given()).toBe(null);
  await field.fill(fit);
  await expect.poll(given, WAIT).toBe(fit);
  expect(await refusal.count()).toBe(0);
  expect(await field.getAttribute('aria-invalid')).toBe(null);
  await page.context().close();
});

test('a day of the audit log has the changes of its last second', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const { userId, email } = await world.insertUser('member');
  const change = {
    ...({ objectType: 'user', objectId: userId, objectName: email } as const),
    ...{ before: { status: 'invited' }, after: { status: 'active' } },
  };
  const origin = { actor: { type: 'user', userId } } as const;
  const atMs = Date.parse(`${day}T23:59:59.500Z`);
  await world.fleet.database
    .transaction()
    .execute((transaction) => recordChange(transaction, DEMO.accountId, origin, change, atMs));
  const page = await world.demoPage();
  await page.goto(`${world.url}/audit?from=${day}&to=${day}`);
  const row = page.getByRole('row').filter({ hasText: email });
  await row.waitFor();
  await expect.poll(() => row.getByRole('rowheader').textContent(), WAIT).toContain('23:59:59.500');
  await page.context().close();
});

test('a day among local times is a day of the reader, and among times of UTC one of UTC', async () => {
  const page = await world.demoPage({ timezoneId: 'Asia/Tokyo' });
  const range = () => {
    const { searchParams } = new URL(page.url());
    return [searchParams.get('from'), searchParams.get('to')];
  };
  await page.goto(`${world.url}/audit?tz=local`);
  await page.getByLabel('From (local)').fill('2026-11-25');
  await page.getByLabel('To (local)').fill('2026-11-25');
  await expect.poll(range, WAIT).toEqual(['2026-11-24T15:00:00.000Z', '2026-11-25T14:59:59.999Z']);
  await page.reload();
  const fields = (zone: string) =>
    Promise.all(
      ['From', 'To'].map((name) =>
        page.getByLabel(`${name} (${zone})`, { exact: true }).inputValue(),
      ),
    );
  expect(await fields('local')).toEqual(['2026-11-25', '2026-11-25']);
  await page.locator('[data-zone]').click();
  await expect.poll(() => fields('UTC'), WAIT).toEqual(['2026-11-24', '2026-11-25']);
  await page.getByLabel('From (UTC)').fill('2026-11-25');
  await expect.poll(range, WAIT).toEqual(['2026-11-25', '2026-11-25T14:59:59.999Z']);
  await page.context().close();
});

test('a day that no calendar has is refused by the API, and the screen stays', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/audit?from=2026-13-45`);
  await page.getByRole('alert').getByText('start_time').waitFor();
  await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  expect(await page.getByLabel('From (UTC)').inputValue()).toBe('');
  await page.context().close();
});
