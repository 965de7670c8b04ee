/** Use of keys, and changes of settings, in the console. */
import { readFile } from 'node:fs/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
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

/** The API makes the change, and the answer does not arrive. */
const loseAnswer = (page: Page, path: RegExp) =>
  page.route(
    path,
    async (route) => {
      await route.fetch();
      await route.abort('connectionaborted');
    },
    { times: 1 },
  );

test('a key is made by keyboard, its secret is shown once and works, and it is revoked', async () => {
  const { page } = await world.userPage('account_admin');
  await world.pressUntilShown(
    page,
    ['g', 'k'],
    page.getByRole('heading', { name: 'Keys', level: 1 }),
  );
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

test('Escape loses neither a key that is being made, nor one that is shown', async () => {
  const { page } = await world.userPage('account_admin');
  // Chromium closes a dialog at the second Escape although the page refused the first.
  const escape = async (): Promise<void> => {
    for (let count = 0; count < 3; count++) await page.keyboard.press('Escape');
  };
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Make a key', exact: true }).click();
  const name = crypto.randomUUID();
  await page.getByLabel('Name').fill(name);
  const answered = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  await page.route(/\/api_credentials$/, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    const response = await route.fetch();
    made.resolve();
    await answered.promise;
    return route.fulfill({ response });
  });
  await page.getByRole('button', { name: 'Make the key' }).click();
  await made.promise;
  await escape();
  expect(await page.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
  answered.resolve();
  const shown = page.getByRole('region', { name: 'The new key' });
  await shown.waitFor();
  await escape();
  expect(await shown.isVisible()).toBe(true);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name }).waitFor();
  await page.context().close();
});

test('after a minute without an answer the dialog shows that the key may have been made, and closes', async () => {
  const { page } = await world.userPage('account_admin');
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Make a key', exact: true }).click();
  await page.getByLabel('Name').fill(crypto.randomUUID());
  await page.clock.install();
  const isSent = Promise.withResolvers<void>();
  const isClosed = Promise.withResolvers<void>();
  const isAborted = Promise.withResolvers<void>();
  await page.route(/\/api_credentials$/, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    isSent.resolve();
    await isClosed.promise;
    await route.abort('connectionaborted');
    return isAborted.resolve();
  });
  await page.getByRole('button', { name: 'Make the key' }).click();
  await isSent.promise;
  const cancel = page.getByRole('button', { name: 'Cancel' });
  expect(await cancel.isDisabled()).toBe(true);
  // The page begins its minute with its next frame.
  await expect
    .poll(async () => {
      await page.clock.fastForward(60_000);
      return cancel.isEnabled();
    }, WAIT)
    .toBe(true);
  await page.getByText('The secret may have been made').waitFor();
  await cancel.click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  isClosed.resolve();
  // Before the page is closed, which ends the route with an error.
  await isAborted.promise;
  await page.context().close();
});

test('a key whose answer was lost is made once, and a new secret is made once', async () => {
  const { page } = await world.userPage('account_admin');
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const lost = page.getByText('The API does not answer.');
  await page.getByRole('link', { name: 'Keys' }).click();
  await press('Make a key');
  const name = crypto.randomUUID();
  await page.getByLabel('Name').fill(name);
  await loseAnswer(page, /\/api_credentials$/);
  await press('Make the key');
  await lost.waitFor();
  await press('Make the key');
  const made = (await page.getByRole('region', { name: 'The new key' }).textContent())!;
  await press('I have stored it');
  const { rows: keys } = await sql<{ hash: Buffer }>`
    select secret_hash as hash from api_credentials where name = ${name}`.execute(
    world.fleet.database,
  );
  expect(keys.map(({ hash }) => hash)).toEqual([hashSecret(made)]);

  await page.getByRole('link', { name }).click();
  await press('New secret …');
  await loseAnswer(page, /\/rotate$/);
  await press('Make a new secret');
  await lost.waitFor();
  await press('Make a new secret');
  await page.getByRole('region', { name: 'The new secret' }).waitFor();
  await press('I have stored it');
  const { rows } = await sql<{ rotations: number }>`
    select count(*)::int as rotations from audit_logs l join api_credentials c
        on c.account_id = l.account_id and c.credential_id::text = l.object_id
     where c.name = ${name} and l.object_type = 'api_credential' and l.action = 'updated'`.execute(
    world.fleet.database,
  );
  expect(rows).toEqual([{ rotations: 1 }]);
  await page.context().close();
});

test('what an app key may do, and from where, is shown', async () => {
  const made = await call('POST', `${account}/api_credentials`, DEMO.accountToken, {
    type: 'app',
    name: 'Dashboard',
    environment_id: DEMO.environmentId,
    read_only: true,
    ip_allowlist: ['203.0.113.0/24'],
  });
  const { api_credential: key } = (await made.json()) as { api_credential: { id: number } };
  const page = await world.demoPage();
  await page.goto(`${world.url}/keys/${key.id}`);
  const shown = page.getByRole('region', { name: 'The key' });
  await shown.getByText('203.0.113.0/24').waitFor();
  expect(await shown.getByText('read only', { exact: true }).count()).toBe(1);
  await page.context().close();
});

test('a token is made with addresses, for reads alone, and with an end, and its page names its maker', async () => {
  const { page } = await world.userPage('account_admin');
  await page.goto(`${world.url}/keys`);
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByLabel('Name').fill('Bound');
  await page.getByLabel('Type').last().selectOption('service_account');
  await page.getByText('Restrictions').click();
  await page.getByLabel('Addresses and CIDR blocks').fill('203.0.113.0/24, 198.51.100.7');
  await page.getByLabel('Reads alone').check();
  await page.getByLabel('Ends at').fill('2030-01-01T00:00');
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name: 'Bound' }).click();
  const shown = page.getByRole('region', { name: 'The key' });
  for (const text of ['203.0.113.0/24, 198.51.100.7', 'read only'])
    await shown.getByText(text, { exact: true }).waitFor();
  const end = shown.locator('dt', { hasText: 'Expires' }).locator('..').locator('time');
  expect(await end.getAttribute('datetime')).toMatch(/^20(29-12-31|30-01-01)T/);
  await shown.getByText(/ by .+@/).waitFor();
  await page.context().close();
});

test('each kind of key of a workspace has its last use in the list, and an unused key is shown as never used', async () => {
  const unused = await call('POST', `${account}/api_credentials`, DEMO.accountToken, {
    type: 'pipelines',
    name: 'Unused',
    environment_id: 1,
  });
  expect(unused.status).toBe(200);
  await world.send('/v1/track', { userId: 'ada', event: 'Order' });
  const tracked = await fetch(`${world.fleet.intake.url}/api/v1/customers/ada`, {
    method: 'PUT',
    headers: { authorization: `Basic ${btoa(`${DEMO.siteId}:${DEMO.apiKey}`)}` },
    body: JSON.stringify({ plan: 'free' }),
  });
  expect(tracked.status).toBe(200);
  expect((await call('GET', '/v1/workspaces', DEMO.appKey)).status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select from api_credentials
       where environment_id = 1 and last_used_at is not null and name = 'Demo'`.execute(
      world.fleet.database,
    );
    expect(rows).toHaveLength(3);
  }, WAIT);

  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Keys' }).click();
  const rowOf = (name: string, type: string) =>
    page.getByRole('row').filter({ hasText: name }).filter({ hasText: type });
  for (const type of ['write key', 'Track API key', 'app key'])
    await rowOf('Demo', type).locator('time').waitFor();
  await rowOf('Unused', 'write key').getByText('never').waitFor();
  await page.getByRole('link', { name: 'Unused' }).click();
  await page.getByText('It was never used. No identify call was taken with it yet').waitFor();
  await page.context().close();
});

test('a key leads to its last use and to the changes made with it, and each entry to its change', async () => {
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
  // The API answers before it has stored the use, and the page reads it once.
  await vi.waitFor(async () => {
    const { rows: used } = await sql`
      select from api_credentials where credential_id = ${key.id} and last_used_at is not null`.execute(
      world.fleet.database,
    );
    expect(used).toHaveLength(1);
  }, WAIT);

  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('link', { name: 'Deploy' }).click();
  await page.getByText('Last used at').waitFor();
  await page.getByRole('link', { name: 'Changes made with it' }).click();
  await page.waitForURL((url) => url.searchParams.get('credential') === String(key.id));
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

test('an entry leads to all changes of the session that made it', async () => {
  const { page, email } = await world.userPage('account_admin');
  const website = `https://${crypto.randomUUID()}.example`;
  await page.evaluate(
    async ([url, text]) => {
      const answer = await fetch(url!, {
        method: 'PUT',
        headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
        body: JSON.stringify({ account: { website: text } }),
      });
      if (!answer.ok) throw new Error(await answer.text());
    },
    [account, website],
  );
  await page.getByRole('link', { name: 'Audit log' }).click();
  const rows = page.getByRole('row').filter({ hasText: email });
  await rows.filter({ hasText: 'website' }).getByRole('link').focus();
  await page.keyboard.press('Enter');
  const link = page.getByRole('link', { name: /^all changes of session \d+$/ });
  await link.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => /^\d+$/.test(url.searchParams.get('session') ?? ''));
  await page.getByRole('row').filter({ hasText: 'Session in the console' }).waitFor();
  // The sign-in and the change; the log has more of other sessions.
  expect(await rows.count()).toBe(2);
  expect(await page.getByRole('row').count()).toBe(3);
  await page.context().close();
});

test('the audit log is exported as it is filtered, once though the first answer was lost', async () => {
  const page = await world.demoPage({ acceptDownloads: true });
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByLabel('Object').selectOption('console_session');
  await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('Users');
  await loseAnswer(page, /\/audit_logs\/export$/);
  await page.getByRole('button', { name: 'Export CSV' }).click();
  await page.getByText('The API does not answer.').waitFor();
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const link = page.getByRole('link', { name: /^Download \d+ entries/ });
  await link.waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  const [head = '', ...lines] = (await readFile(await download.path(), 'utf8'))
    .trim()
    .split(/\r?\n/);
  const columns = ['object_type', 'actor_type'].map((name) => head.split(',').indexOf(name));
  expect(lines.length).toBeGreaterThan(0);
  const ofLines = lines.map((line) => columns.map((column) => line.split(',')[column]).join(' '));
  expect(new Set(ofLines)).toEqual(new Set(['console_session user']));
  const { rows } = await sql<{ exports: number }>`
    select count(*)::int as exports from audit_log_exports where account_id = ${DEMO.accountId}`.execute(
    world.fleet.database,
  );
  expect(rows).toEqual([{ exports: 1 }]);
  await page.context().close();
});

test('a member has no link to the keys, and their page refuses the role', async () => {
  const { page } = await world.userPage('member');
  await page.goto(`${world.url}/keys`);
  await page.getByText('This is not for your role').waitFor();
  expect(await page.getByRole('link', { name: 'Keys' }).count()).toBe(0);
  await page.context().close();
});
