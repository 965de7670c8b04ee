/** The next charge and its reasons, in the console. */
import { readFile } from 'node:fs/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';
import { WAIT } from '../fleet-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('billing shows the plan, its usage and the purchases, and each number leads to its parts', async () => {
  const page = await world.demoPage();
  await world.pressUntilShown(page, ['g', 'b'], page.getByText(/^Premium at/));
  await page
    .getByText(/invoice/)
    .first()
    .waitFor();
  const profiles = page.getByRole('row').filter({ hasText: 'profiles' });
  await profiles.waitFor();
  await page.getByRole('link', { name: 'llm' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Credits' }).waitFor();
  await page.getByRole('button', { name: 'Make a CSV of all moves' }).click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: /^Download \d+ moves$/ }).click(),
  ]);
  const [head, ...moves] = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
  expect(head).toMatch(/^entry_id,created_at,reason,/);
  const answer = await fetch(
    `${world.url}/v1/accounts/${DEMO.accountId}/billing/credits/ledger?credit_type=llm&limit=200`,
    { headers: { authorization: `Bearer ${DEMO.accountToken}` } },
  );
  const { entries } = (await answer.json()) as { readonly entries: readonly object[] };
  expect(moves).toHaveLength(entries.length);
  await page.getByRole('button', { name: 'builder' }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('type'), WAIT).toBe('builder');
  await page.goto(`${world.url}/billing/usage?by=week`);
  await page.getByText('0 in all.').waitFor();
  await page.context().close();
});

// A day that was picked in one zone was the day before in another.
test('times of billing are in the zone of the account, for a viewer elsewhere', async () => {
  const { database } = world.fleet;
  const setZone = (zone: string) =>
    sql`update accounts set timezone = ${zone} where account_id = ${DEMO.accountId}`.execute(
      database,
    );
  onTestFinished(async () => void (await setZone('Etc/UTC')));
  await setZone('Asia/Kolkata');
  const page = await world.demoPage({ timezoneId: 'America/Los_Angeles' });
  await page.goto(`${world.url}/billing?tz=local`);
  await page.getByText('in the zone of the account, Asia/Kolkata').waitFor();
  const period = page.getByRole('table').filter({ hasText: 'profiles' }).locator('caption time');
  expect(await period.first().innerText()).toMatch(/ \+05:30$/);
  // Other screens have that zone by the button of the frame.
  await page.goto(`${world.url}/settings?tz=local`);
  const time = page.locator('main time').first();
  await time.waitFor();
  expect(await time.innerText()).toMatch(/ -0[78]:00$/);
  await page.getByRole('button', { name: 'Times are local; change' }).click();
  await page.waitForURL(({ searchParams }) => searchParams.get('tz') === 'account');
  expect(await time.innerText()).toMatch(/ \+05:30$/);
  await page.keyboard.press('t');
  await page.waitForURL(({ searchParams }) => !searchParams.has('tz'));
  expect(await time.innerText()).toMatch(/ UTC$/);
  await page.context().close();
});

test('a purchase shows its outcome, and its steps with their times', async () => {
  const runId = `run_${crypto.randomUUID()}`;
  await sql`
    with made as (
      insert into runs
        (account_id, run_id, lane, kind, rail, fingerprint, status, message, content, origin, created_at, finished_at)
      values (${DEMO.accountId}, ${runId}, 'invoiced', 'credits', 'invoiced', 'x', 'declined', 'Your card was declined.',
              '{}', '{}', now() - interval '3 seconds', now())
    )
    insert into run_steps
      (account_id, run_id, step, attempt, state, idempotency_key, input, started_at, ended_at)
    values (${DEMO.accountId}, ${runId}, 'pay_invoice', 1, 'declined', 'x', '{}', now() - interval '2 seconds', now())`.execute(
    world.fleet.database,
  );
  const page = await world.demoPage();
  await page.goto(`${world.url}/billing`);
  await page.getByRole('row').filter({ hasText: 'credits' }).getByRole('link').click();
  await page.getByText('The card was declined, and was not charged.').waitFor();
  await page.getByText('Your card was declined.').waitFor();
  const step = page.getByRole('row').filter({ hasText: 'pay invoice' });
  expect(await step.innerText()).toMatch(/declined\s+2 s$/);
  await page.context().close();
});
