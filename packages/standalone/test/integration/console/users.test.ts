/** Users in the console: a colleague is invited, changed and removed. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('an account_admin invites a colleague, who signs in; the role is changed, and the colleague removed', async () => {
  const { page } = await world.userPage('account_admin');
  await page.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('button', { name: 'Invite' }).click();
  const email = `${crypto.randomUUID()}@example.com`;
  const dialog = page.getByRole('dialog', { name: 'Invite a user' });
  await dialog.getByLabel('Email').fill(email);
  await dialog.getByRole('button', { name: 'Invite' }).click();
  const row = page.getByRole('row').filter({ hasText: email }).first();
  await row.getByText('invited').waitFor();
  await vi.waitFor(async () => expect(await world.mailsTo(email)).toHaveLength(1), WAIT);

  const theirs = await world.newPage();
  await theirs.goto(world.url);
  await world.giveMailedCode(theirs, email);
  await theirs.getByRole('heading', { name: 'Overview' }).waitFor();
  // A member has no screen of users.
  expect(await theirs.getByRole('link', { name: 'Users' }).count()).toBe(0);

  await page.getByRole('button', { name: email }).click();
  await page.getByLabel(/^Role/).selectOption('account_admin');
  const save = page.getByRole('button', { name: 'Save' });
  await save.focus();
  await page.keyboard.press('Enter');
  await row.getByText('account_admin').first().waitFor();
  await expect.poll(() => save.isEnabled(), WAIT).toBe(false);
  // A user of the keyboard goes on from there.
  expect(await save.evaluate((each) => each === document.activeElement)).toBe(true);
  await theirs.reload();
  await theirs.getByRole('link', { name: 'Users' }).waitFor();

  await page.getByRole('button', { name: 'Remove …' }).click();
  await page.getByRole('button', { name: 'Remove the user' }).click();
  await page.getByRole('button', { name: email }).waitFor({ state: 'detached' });
  await theirs.reload();
  await theirs.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.context().close();
  await theirs.context().close();
});

test('a change of the workspaces leaves the role that a colleague has given meanwhile', async () => {
  const { email, userId } = await world.insertUser('member');
  const { page } = await world.userPage('account_admin');
  await page.goto(`${world.url}/users?user=${userId}`);
  const save = page.getByRole('button', { name: 'Save' });
  await save.waitFor();
  expect(await save.isEnabled()).toBe(false);
  const { database } = world.fleet;
  await sql`
    update users set role = 'billing_admin' where account_id = ${DEMO.accountId} and user_id = ${userId}`.execute(
    database,
  );
  await page.getByRole('group', { name: 'Workspaces' }).getByRole('checkbox').first().uncheck();
  await save.click();
  await page
    .getByRole('row')
    .filter({ hasText: email })
    .first()
    .getByText('billing_admin')
    .first()
    .waitFor();
  const { rows } = await sql<{ role: string; count: number }>`
    select u.role, (select count(*)::int from memberships m
                     where m.account_id = u.account_id and m.user_id = u.user_id) as count
      from users u where u.account_id = ${DEMO.accountId} and u.user_id = ${userId}`.execute(
    database,
  );
  expect(rows).toEqual([{ role: 'billing_admin', count: 0 }]);
  await expect.poll(() => page.getByLabel(/^Role/).inputValue(), WAIT).toBe('billing_admin');
  await page.context().close();
});

test('a user who is invited while the list is read is in the list', async () => {
  const { page } = await world.userPage('account_admin');
  await page.goto(`${world.url}/users`);
  const open = page.getByRole('button', { name: 'Invite', exact: true });
  await page.getByRole('row').nth(1).waitFor();
  const answered = Promise.withResolvers<void>();
  const passed = Promise.withResolvers<void>();
  let count = 0;
  await page.route('**/all_users', async (route) => {
    const response = await route.fetch();
    // The answer to the first read comes after the second invitation.
    if (++count === 1) {
      answered.resolve();
      await passed.promise;
    }
    await route.fulfill({ response });
  });
  const invite = async (email: string): Promise<void> => {
    await open.click();
    const dialog = page.getByRole('dialog', { name: 'Invite a user' });
    await dialog.getByLabel('Email').fill(email);
    await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const [first, second] = [1, 2].map(() => `${crypto.randomUUID()}@example.com`);
  await invite(first!);
  await answered.promise;
  await invite(second!);
  passed.resolve();
  await page.getByRole('button', { name: second! }).waitFor();
  expect(await page.getByRole('button', { name: first! }).count()).toBe(1);
  await page.context().close();
});

test('a number stays behind a name that is read from the right', async () => {
  const { userId } = await world.insertUser('member');
  await sql`
    update users set first_name = 'דוד', last_name = 'לוי'
     where account_id = ${DEMO.accountId} and user_id = ${userId}`.execute(world.fleet.database);
  const { page } = await world.userPage('account_admin');
  await page.goto(`${world.url}/users?user=${userId}`);
  const name = page.getByText('דוד לוי');
  await name.waitFor();
  const [nameEnd, numberBegin] = await name.evaluate((element) => {
    const text = document.createRange();
    text.selectNodeContents(element.firstChild!);
    const number = element.querySelector('span')!;
    return [text.getBoundingClientRect().right, number.getBoundingClientRect().left];
  });
  expect(numberBegin).toBeGreaterThanOrEqual(nameEnd);
  await page.context().close();
});
