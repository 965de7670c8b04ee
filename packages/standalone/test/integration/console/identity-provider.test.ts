/**
 * Sign-in by a company's identity provider, in the console.
 *
 * An account_admin sets the provider, and a user signs in by it.
 */
import { startProviderUnderTest } from '@sluice/platform/testing/identity-provider-under-test';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { violationsOf } from './accessibility.ts';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, OPERATOR_ACCOUNT_ID, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
let provider: Awaited<ReturnType<typeof startProviderUnderTest>>;
beforeAll(async () => {
  // Another site than the console's, as in life.
  [world, provider] = await Promise.all([
    startConsole(),
    startProviderUnderTest({ host: 'localhost' }),
  ]);
  world.allow(provider.issuer);
  await sql`
    insert into accounts (account_id, name) overriding system value values (${OPERATOR_ACCOUNT_ID}, 'Acme')`.execute(
    world.fleet.database,
  );
});
afterAll(async () => {
  await world.close();
  await provider.close();
});

async function insertUser(role: 'account_admin' | 'member'): Promise<string> {
  const email = `${crypto.randomUUID()}@acme.example`;
  await sql`
    insert into users (account_id, email, first_name, last_name, role, status)
    values (${OPERATOR_ACCOUNT_ID}, ${email}, 'Ada', 'Lovelace', ${role}, 'active')`.execute(
    world.fleet.database,
  );
  return email;
}

const giveEmail = async (page: Page, email: string): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Go on', exact: true }).click();
};
const signInName = () => `Sign in with ${new URL(provider.issuer).host}`;

test('an account_admin sets the provider, users sign in by it, and then it is required', async () => {
  const admin = await insertUser('account_admin');
  const page = await world.newPage();
  await page.goto(world.url);
  await world.giveMailedCode(page, admin);
  await page.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('button', { name: 'Set up a provider' }).click();
  const dialog = page.getByRole('dialog', { name: 'Identity provider' });
  await dialog.getByText(`${world.url}/sign-in/${OPERATOR_ACCOUNT_ID}`).waitFor();
  await dialog.getByLabel('Issuer').fill(provider.issuer);
  await dialog.getByLabel('Client ID').fill(provider.clientId);
  await dialog.getByLabel('Client secret').fill(provider.clientSecret);
  await dialog.getByLabel('Email domains').fill('acme.example');
  await dialog.getByLabel('A person who is not a user yet').selectOption('member');
  expect(await violationsOf(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('No account_admin has signed in by it yet').waitFor();
  expect(await page.content()).not.toContain(provider.clientSecret);

  await page.getByRole('button', { name: 'Sign out' }).click();
  provider.state.person = { sub: 'admin', email: admin, email_verified: true };
  await giveEmail(page, admin);
  await page.getByRole('button', { name: 'Mail me a code' }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  // By the keyboard: the button has the focus.
  await page.getByRole('button', { name: signInName() }).press('Enter');
  await page.getByRole('navigation', { name: 'Screens' }).waitFor();
  // The screen that the user signed out of.
  await expect
    .poll(() => new URL(page.url()).pathname + new URL(page.url()).search, WAIT)
    .toBe('/users');
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, history.state, location.href]),
  );
  expect(kept).not.toContain('code');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('cell', { name: 'identity provider' }).waitFor();

  await page.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('button', { name: 'Change the provider' }).click();
  await dialog.getByLabel('It is required').check();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('no mailed code and no token opens a session').waitFor();

  // A person without an invitation.
  const theirs = await world.newPage();
  const email = `${crypto.randomUUID()}@acme.example`;
  provider.state.person = { sub: email, email, email_verified: true };
  await theirs.goto(`${world.url}/live?tz=local`);
  await giveEmail(theirs, email);
  await theirs.getByRole('button', { name: signInName() }).waitFor();
  expect(await theirs.getByRole('button', { name: 'Mail me a code' }).count()).toBe(0);
  await theirs.getByRole('button', { name: signInName() }).click();
  await theirs.getByRole('navigation', { name: 'Screens' }).waitFor();
  // The screen that was asked for before the sign-in.
  await expect.poll(() => theirs.url(), WAIT).toBe(`${world.url}/live?tz=local`);
  provider.lies.metadata = { end_session_endpoint: `${provider.issuer}/signed-out` };
  // The browser keeps the page as it is left, for Back: it must show no data any more.
  await theirs.evaluate(() =>
    addEventListener('pagehide', () =>
      sessionStorage.setItem('left at', document.querySelector('h1')?.textContent ?? ''),
    ),
  );
  await theirs.getByRole('button', { name: 'Sign out' }).click();
  await theirs.waitForURL((url) => url.href.startsWith(`${provider.issuer}/signed-out?`));
  provider.lies.metadata = {};
  await theirs.goto(world.url);
  await theirs.getByLabel('Email').waitFor();
  expect(await theirs.evaluate(() => sessionStorage.getItem('left at'))).toBe('Sign in');
  await page.context().close();
  await theirs.context().close();
});

test('an unverified address, errors of the provider and answers to another browser are refused with a sentence', async () => {
  const email = await insertUser('member');
  const page = await world.newPage();
  await page.goto(world.url);
  provider.state.person = { sub: email, email, email_verified: false };
  await giveEmail(page, email);
  await page.getByRole('button', { name: signInName() }).click();
  await page.getByText('does not send your email address as verified').waitFor();
  await expect
    .poll(() => new URL(page.url()).pathname + new URL(page.url()).search, WAIT)
    .toBe('/');

  const back = `${world.url}/sign-in/${OPERATOR_ACCOUNT_ID}`;
  await page.goto(`${back}?error=access_denied`);
  await page.getByText('The identity provider did not let you in.').waitFor();
  await page.goto(`${back}?error=${encodeURIComponent('Call +1 555 and pay')}`);
  await page.getByText('The identity provider did not sign you in.').waitFor();
  expect(await page.getByText('555').count()).toBe(0);
  await page.goto(`${back}?code=stolen&state=${'s'.repeat(43)}`);
  await page.getByText('began in another browser').waitFor();
  await page.context().close();
});
