/**
 * Sign-in to the console, by keyboard alone.
 *
 * By a mailed code, with a second factor and its loss, and by a pasted token.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { fromBase32, passwordOfStep, STEP_MS } from '@sluice/platform/secrets/one-time-password';
import jsqr from 'jsqr';
import { sql } from 'kysely';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const codeOf = (secret: string): string =>
  passwordOfStep(fromBase32(secret), Math.floor(Date.now() / STEP_MS));

test('a user sets a second factor up by keyboard, needs it from then on, and comes in by a recovery code', async () => {
  const { page, email } = await world.userPage('member');
  await world.pressUntilShown(page, ['Control+k'], page.getByRole('dialog', { name: 'Go to' }));
  await page.keyboard.type('settings');
  await page.keyboard.press('Enter');
  const focus = async (name: string): Promise<void> => {
    const button = page.getByRole('button', { name, exact: true });
    await button.waitFor();
    for (let count = 0; count < 60; count++) {
      if (await button.evaluate((each) => each === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`${name} is not reached by Tab`);
  };
  const press = async (name: string): Promise<void> => {
    await focus(name);
    await page.keyboard.press('Enter');
  };
  await press('Set up a second factor');
  await press('Show the secret for my app');
  const secret = (await page.locator('[data-secret]').textContent())!.replaceAll(' ', '');
  await page.getByLabel('Code of six digits').waitFor();
  await page.keyboard.type(codeOf(secret));
  await page.keyboard.press('Enter');
  const shown = page.getByRole('region', { name: 'Recovery codes' });
  const codes = (await shown.textContent())!.split('\n');
  expect(codes).toHaveLength(10);
  // They are shown once, so only the button closes them.
  await page.keyboard.press('Escape');
  expect(await shown.isVisible()).toBe(true);
  await press('I have stored them');
  await page.getByText('10 of 10 recovery codes are left').waitFor();
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, history.state, location.href]),
  );
  for (const text of [secret, ...codes]) expect(kept).not.toContain(text);

  await press('Sign out');
  await world.giveMailedCode(page, email);
  await page.getByRole('heading', { name: 'Second factor' }).waitFor();
  await press('I do not have the app');
  await page.getByLabel('One of your recovery codes').fill(codes[0]!.toLowerCase());
  await page.keyboard.press('Enter');
  await page.getByText('9 of 10 recovery codes are left').waitFor();

  // The phone is lost: another recovery code removes its factor, and the user can set up another.
  await press('Remove');
  await press('I do not have the app');
  await page.getByLabel('One of your recovery codes').fill(codes[1]!);
  await page.keyboard.press('Enter');
  await page.getByText('Off: a mailed code is enough').waitFor();
  await page.getByRole('button', { name: 'Set up a second factor', exact: true }).waitFor();
  await page.context().close();
});

/** Text of a QR code, by the pixels of the screen, as a phone reads it. */
async function scan(code: Locator): Promise<string> {
  const picture = (await code.screenshot()).toString('base64');
  const page = await world.newPage();
  const { pixels, width, height } = await page.evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d')!;
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return { pixels: [...data], width: image.width, height: image.height };
  }, `data:image/png;base64,${picture}`);
  await page.context().close();
  const found = jsqr.default(Uint8ClampedArray.from(pixels), width, height);
  if (!found) throw new Error('no QR code is found');
  return found.data;
}

test('if the account requires two factors, the sign-in leads through the setup by its QR code', async () => {
  const setRequired = (isRequired: boolean) =>
    sql`update accounts set is_two_factor_required = ${isRequired} where account_id = ${DEMO.accountId}`.execute(
      world.fleet.database,
    );
  const { email } = await world.insertUser('member');
  await setRequired(true);
  const page = await world.newPage();
  await page.goto(world.url);
  await world.giveMailedCode(page, email);
  await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
  const scripts: string[] = [];
  page.on('request', (request) => {
    if (request.resourceType() === 'script') scripts.push(request.url());
  });
  await page.getByRole('button', { name: 'Show the secret for my app' }).click();
  const code = page.getByRole('img', { name: 'QR code of the secret' });
  await code.locator('path').waitFor();
  // Its library comes with it, and not with the first screen.
  expect(scripts).toHaveLength(1);
  const typed = (await page.locator('[data-secret]').textContent())!.replaceAll(' ', '');
  expect(await problemsOf(page)).toEqual([]);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const uri = new URL(await scan(code));
    expect(uri.protocol + uri.host).toBe('otpauth:totp');
    expect(uri.searchParams.get('secret')).toBe(typed);
    expect(decodeURIComponent(uri.pathname)).toContain(email);
  }
  const { searchParams } = new URL(await scan(code));
  await page.getByLabel('Code of six digits').fill(codeOf(searchParams.get('secret')!));
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByRole('button', { name: 'I have stored them' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname, WAIT).toBe('/');
  await setRequired(false);
  await page.context().close();
});

test('a page that is left open marks the reads that it repeats, and its session can end', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/imports`);
  const marked = (mark: string | undefined) =>
    page.waitForRequest(
      (request) =>
        request.url().includes('/v1/imports?') && request.headers()['x-sluice-unattended'] === mark,
    );
  await marked('1');
  const used = marked(undefined);
  await page.keyboard.press('Shift');
  expect((await used).method()).toBe('GET');
  await marked('1');
  await page.context().close();
});

test('a pasted token that opens no workspace leads to the billing and the settings of the account', async () => {
  const answer = await fetch(`${world.url}/v1/accounts/${DEMO.accountId}/api_credentials`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO.accountToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'service_account', name: 'Buyer', role: 'billing_admin' }),
  });
  const page = await world.newPage();
  await page.goto(world.url);
  await page.getByRole('button', { name: 'Use a token' }).click();
  const { secret } = (await answer.json()) as { secret: string };
  await page.getByLabel('Token of a service account').fill(secret);
  await page.keyboard.press('Enter');
  await page.getByText('A token of a billing_admin opens the account alone').waitFor();
  await page.getByRole('link', { name: 'Billing' }).click();
  await page.getByRole('heading', { name: 'Billing' }).waitFor();
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByText('Buyer, billing_admin of Demo').waitFor();
  expect(await page.getByText('opens the account alone').count()).toBe(0);
  await page.context().close();
});

test('a pasted token opens the console under its own name, and a session is ended from another', async () => {
  const answer = await fetch(`${world.url}/v1/accounts/${DEMO.accountId}/api_credentials`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO.accountToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'service_account', name: 'Laptop', role: 'account_admin' }),
  });
  const { secret } = (await answer.json()) as { secret: string };
  const signIn = async () => {
    const page = await world.newPage();
    await page.goto(`${world.url}/settings`);
    await page.getByRole('button', { name: 'Use a token' }).click();
    await page.getByLabel('Token of a service account').fill(secret);
    await page.keyboard.press('Enter');
    await page.getByText('Laptop, account_admin of Demo').waitFor();
    return page;
  };
  const page = await signIn();
  const other = await signIn();
  await other.getByRole('button', { name: 'End' }).click();
  await other.getByRole('button', { name: 'End' }).waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(await other.getByText('this one').count()).toBe(1);
  await page.context().close();
  await other.context().close();
});

// The browser keeps a page as it is left, and shows it again at once.
test('a tab shows the user who signed in in another tab of the browser, and not the one before', async () => {
  const { page, email } = await world.userPage('account_admin');
  // This screen reads its list once.
  await page.goto(`${world.url}/users`);
  await page.getByRole('button', { name: email }).waitFor();
  const other = await page.context().newPage();
  await other.goto(world.url);
  await other.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  const next = await world.insertUser('member');
  await world.giveMailedCode(other, next.email);
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.getByText('This is not for your role').waitFor();
  await page.getByText(next.email, { exact: true }).waitFor();
  expect(await page.getByText(email).count()).toBe(0);
  await page.context().close();
});

test('a change that finds its session over leaves no data of the account on the screen', async () => {
  const { page, email } = await world.userPage('account_admin');
  await page.goto(`${world.url}/users`);
  await page.getByRole('button', { name: email }).waitFor();
  await sql`
    delete from console_sessions s using users u
     where u.email = ${email} and (s.account_id, s.user_id) = (u.account_id, u.user_id)`.execute(
    world.fleet.database,
  );
  await page.getByRole('button', { name: 'Invite' }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a user' });
  await dialog.getByLabel('Email').fill('late@example.com');
  await dialog.getByRole('button', { name: 'Invite' }).click();
  await page.getByText('Your session is over.').waitFor();
  expect(await page.getByText(email).count()).toBe(0);
  await page.context().close();
});

test('a page that Back brings back hides its data until the session is checked, and then shows it', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/billing`);
  const plan = page.getByText(/^Premium at/);
  await plan.waitFor();
  const answer = Promise.withResolvers<void>();
  await page.route('**/console/session', async (route) => {
    await answer.promise;
    await route.continue();
  });
  await page.evaluate(() =>
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })),
  );
  await plan.waitFor({ state: 'detached' });
  answer.resolve();
  await plan.waitFor();
  expect(new URL(page.url()).pathname).toBe('/billing');
  await page.context().close();
});
