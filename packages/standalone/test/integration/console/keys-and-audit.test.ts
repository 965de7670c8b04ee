/** What did that key do, and is it still used? Who changed this setting, from what to what? Answered in the console. */
import { readFile } from 'node:fs/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const account = `/v1/accounts/${DEMO.accountId}`;
const call = (method: string, path: string, token: string, body?: object) =>
  fetch(world.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });

test('a key is made by keyboard, its secret is shown once and works, and it is revoked', async () => {
  const { page } = await world.userPage('account_admin');
  await page.keyboard.press('g');
  await page.keyboard.press('k');
  await page.getByRole('heading', { name: 'Keys' }).waitFor();
  const press = async (name: string): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).focus();
    await page.keyboard.press('Enter');
  };
  await press('Make a key');
  await page.getByLabel('Name').waitFor();
  await page.keyboard.type('Shop');
  await page.keyboard.press('Tab');
  await page.keyboard.type('app key');
  await press('Make the key');
  const shown = page.getByRole('region', { name: 'The new key' });
  const secret = (await shown.textContent())!;
  await page.keyboard.press('Escape');
  expect(await shown.isVisible()).toBe(true);
  expect((await call('GET', '/v1/workspaces', secret)).status).toBe(200);
  await press('I have stored it');
  expect(await page.content()).not.toContain(secret);
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, history.state, location.href]),
  );
  expect(kept).not.toContain(secret);

  await page.getByRole('link', { name: 'Shop' }).focus();
  await page.keyboard.press('Enter');
  await press('Revoke …');
  await press('Revoke the key');
  await page.getByText('Revoked at').waitFor();
  await expect
    .poll(async () => (await call('GET', '/v1/workspaces', secret)).status, { timeout: 20_000 })
    .toBe(401);
  await page.context().close();
});

test('a key leads to its last use and to what was changed with it, and that to the change itself', async () => {
  const made = await call('POST', `${account}/api_credentials`, DEMO.accountToken, {
    type: 'service_account',
    name: 'Deploy',
    role: 'account_admin',
  });
  const { secret, api_credential: key } = (await made.json()) as {
    secret: string;
    api_credential: { id: number };
  };
  const website = `https://${crypto.randomUUID()}.example`;
  const changed = await call('PUT', account, secret, { account: { website } });
  expect(changed.status).toBe(200);

  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('link', { name: 'Deploy' }).click();
  await page.getByText('Last used at').waitFor();
  await page.getByRole('link', { name: 'What was changed with it' }).click();
  expect(new URL(page.url()).searchParams.get('credential')).toBe(String(key.id));
  const rows = page.getByRole('row').filter({ hasText: 'Deploy' });
  await rows.first().waitFor();
  expect(await rows.count()).toBe(1);
  await rows.getByRole('link').click();
  await page.getByText('fits the entry before').waitFor();
  const change = page.getByRole('row').filter({ hasText: 'website' });
  expect(await change.locator('ins').textContent()).toBe(website);
  const shown = await page.locator('main').innerText();
  await page.reload();
  await page.getByText('fits the entry before').waitFor();
  expect(await page.locator('main').innerText()).toBe(shown);
  await page.context().close();
});

test('the audit log is exported as it is filtered', async () => {
  const page = await world.demoPage({ acceptDownloads: true });
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByLabel('Object').selectOption('console_session');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const link = page.getByRole('link', { name: /^Download \d+ entries/ });
  await link.waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  const [head = '', ...lines] = (await readFile(await download.path(), 'utf8'))
    .trim()
    .split(/\r?\n/);
  const column = head.split(',').indexOf('object_type');
  expect(lines.length).toBeGreaterThan(0);
  expect(new Set(lines.map((line) => line.split(',')[column]))).toEqual(
    new Set(['console_session']),
  );
  await page.context().close();
});

test('a member is told that keys are not the role’s', async () => {
  const { page } = await world.userPage('member');
  await page.goto(`${world.url}/keys`);
  await page.getByText('This is not for your role').waitFor();
  expect(await page.getByRole('link', { name: 'Keys' }).count()).toBe(0);
  await page.context().close();
});
