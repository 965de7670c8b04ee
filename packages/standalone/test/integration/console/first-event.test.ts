/**
 * First steps in the console.
 *
 * A newcomer sees whether calls arrive, and the reason of a refusal.
 */
import { spawnSync } from 'node:child_process';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

/** Well within the minute for which a hidden tab keeps its tail. */
const AT_ONCE = { timeout: 30_000, interval: 50 };

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('an issue is copied as a call that shows it', async () => {
  const page = await world.demoPage();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await world.send('/v1/track', { event: 'nobody' }, false);
  await page.goto(`${world.url}/issues`);
  const row = page.locator('main button[data-row]').first();
  const code = (await row.textContent())!;
  await row.click();
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(copied, WAIT).toContain('/v1/ingestion_issues?');
  const call = await copied();
  const env = { ...process.env, SLUICE_KEY: DEMO.appKey };
  const { stdout } = spawnSync('sh', ['-c', `${call} -sS`], { env, encoding: 'utf8' });
  const shown = JSON.parse(stdout) as { ingestion_issues: { code: string }[] };
  expect(shown.ingestion_issues.map((each) => each.code)).toEqual([code]);
  await page.context().close();
});

test('the sample of the first page is pasted, and the page shows its event and its trace', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Start', exact: true }).click();
  await page.getByText('Calls from now on are shown here').waitFor();
  const sample = (await page.getByRole('region', { name: 'Sample' }).textContent()) ?? '';
  const pasted = sample.replace('http://127.0.0.1:8080', world.fleet.intake.url);
  expect(pasted).not.toBe(sample);
  await world.sendUntilShown(page.getByRole('heading', { name: 'Your first event is here' }), () =>
    expect(spawnSync('sh', ['-c', `${pasted} -s`]).status).toBe(0),
  );
  // The next call to paste, which makes the first webhook.
  const told = page.getByRole('region', { name: /^Then receive each order/ });
  expect(JSON.parse(await world.paste(told))).toMatchObject({
    events: ['event'],
    event_names: ['order_placed'],
  });
  await page.getByRole('link', { name: 'See its trace' }).click();
  await page.getByRole('heading', { name: 'order_placed' }).waitFor();
  await page.getByText('Processed', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Data of the event' }).getByText('"total": 12').waitFor();
  await page.context().close();
});

test('every language has a sample, and the one that is chosen is in the address', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Start', exact: true }).click();
  for (const language of ['Node', 'Browser', 'Python', 'Go', 'Ruby']) {
    await page.getByRole('button', { name: language, exact: true }).click();
    expect(await page.getByRole('region', { name: 'Sample' }).textContent()).toContain(
      'demo_write_key',
    );
    await page.waitForURL((url) => url.searchParams.get('language') === language.toLowerCase());
  }
  await page.reload();
  expect(await page.getByRole('region', { name: 'Sample' }).textContent()).toContain('Net::HTTP');
  await page.context().close();
});

test('live shows calls as they come, filters them at the server, and pauses for the row that is open', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Live' }).first().click();
  await page.getByText('listening').waitFor();
  const seenLive = page.getByRole('button', { name: 'Seen live' });
  await world.sendUntilShown(seenLive, () =>
    world.send('/v1/track', { userId: 'ada', event: 'Seen live', messageId: 'live-1' }),
  );
  expect(await world.send('/v1/track', { userId: 'ada', event: 7 })).toBe(400);
  await seenLive.first().click();
  await page.getByText('paused', { exact: false }).first().waitFor();
  await page.getByRole('link', { name: 'Trace' }).waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('paused'), WAIT).toBe('yes');
  // Intake forgets a reader whose API stands still for some seconds.
  await world.sendUntilShown(page.getByText(/^[1-9]\d* since pause$/), () =>
    world.send('/v1/track', { userId: 'ada', event: 'While paused', messageId: 'live-2' }),
  );
  expect(await page.getByText('While paused').count()).toBe(0);

  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByText('While paused').first().waitFor();
  await page.getByLabel('Outcome').selectOption('refused');
  await page.getByText('No matching call has come yet').waitFor();
  await page.getByText('listening').waitFor();
  await world.sendUntilShown(page.getByText('event: invalid'), async () => {
    await world.send('/v1/track', { userId: 'ada', event: 'Not refused', messageId: 'live-3' });
    await world.send('/v1/track', { userId: 'ada', event: 7 });
  });
  expect(await page.getByText('Not refused').count()).toBe(0);
  await page.context().close();
});

test('a paused tail shows no lines of another filter, nor of another workspace', async () => {
  const { email, userId } = await world.insertUser('account_admin');
  const { database } = world.fleet;
  await sql`
    with made as (
      insert into environments (account_id, environment_id, name, webhook_signing_key)
      select account_id, 77, 'Second', webhook_signing_key from environments where environment_id = ${DEMO.environmentId}
      returning environment_id)
    insert into memberships (account_id, user_id, environment_id)
    select ${DEMO.accountId}, ${userId}, environment_id from made`.execute(database);
  onTestFinished(async () => {
    await sql`delete from memberships where environment_id = 77`.execute(database);
    await sql`delete from environments where environment_id = 77`.execute(database);
  });
  const page = await world.newPage();
  await page.goto(`${world.url}/live`);
  await world.giveMailedCode(page, email);
  const line = page.getByRole('button', { name: 'Of this one' });
  const showPaused = async (): Promise<void> => {
    await page.getByText('listening').waitFor();
    await world.sendUntilShown(line, () =>
      world.send('/v1/track', { userId: 'ada', event: 'Of this one' }),
    );
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.waitForURL(/paused=yes/);
  };
  await showPaused();
  await page.getByLabel('Outcome').selectOption('refused');
  await page.getByText('No matching call has come yet').waitFor();
  expect(await line.count()).toBe(0);
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByRole('button', { name: 'Go on' }).click();
  await showPaused();
  await page.getByLabel('Workspace').selectOption({ label: 'Second' });
  await page.getByText('No call has come yet').waitFor();
  expect(await line.count()).toBe(0);
  await page.context().close();
});

test('an issue shows the reason for a changed or refused call, and the address keeps it open', async () => {
  expect(await world.send('/v1/track', { event: 'x', timestamp: 'yesterday' }, false)).toBe(200);
  const page = await world.demoPage();
  await world.pressUntilShown(
    page,
    ['g', 'i'],
    page.getByRole('heading', { name: 'Issues', level: 1 }),
  );
  await page.getByRole('button', { name: 'required' }).click();
  const detail = page.locator('tr.detail');
  await detail.waitFor();
  const shown = await detail.textContent();
  await page.reload();
  await detail.waitFor();
  expect(await detail.textContent()).toBe(shown);
  await page.context().close();
});

/** Hides a tab or shows it. The browser of the tests shows all of them, as windows side by side. */
const turn = (page: Page, state: 'hidden' | 'visible'): Promise<void> =>
  page.evaluate((visibilityState) => {
    Object.defineProperty(document, 'visibilityState', {
      configurable: true,
      value: visibilityState,
    });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);

test('an overview that was hidden for more than a minute counts from its return', async () => {
  const hiddenMs = 70_000;
  const page = await world.newPage();
  // At the return the clock of the page is right again.
  await page.clock.install({ time: Date.now() - hiddenMs });
  const calls = page.getByRole('list', { name: 'Now' }).getByRole('listitem').first();
  await page.goto(world.url);
  await page.getByRole('button', { name: 'Open the demo' }).click();
  await calls.getByText(/^[1-9]\d*$|^0$/).waitFor();
  await turn(page, 'hidden');
  await page.clock.fastForward(hiddenMs);
  await calls.getByText('…', { exact: true }).waitFor();
  await turn(page, 'visible');
  await world.sendUntilShown(calls.getByText(/^[1-9]\d*$/), () =>
    world.send('/v1/track', { userId: 'ada', event: 'Returned' }),
  );
  const [, seconds = ''] = /in the last (\d+) s/.exec(await calls.innerText()) ?? [];
  expect(Number(seconds)).toBeLessThan(hiddenMs / 1_000 - 20);
  await page.context().close();
});

// A browser has six connections for a host. With six tails open, other pages and calls waited.
test('of seven tabs with a tail four read, and the calls of each are answered', async () => {
  const first = await world.demoPage();
  const tabs = [first];
  while (tabs.length < 7) tabs.push(await first.context().newPage());
  const standingOf = (tab: Page) => tab.locator('.standing .state');
  for (const tab of tabs) {
    await tab.goto(`${world.url}/live`);
    await standingOf(tab)
      .getByText(/listening|waits/)
      .waitFor();
  }
  const standings = () => Promise.all(tabs.map((tab) => standingOf(tab).innerText()));
  const [reads, waits] = ['listening', 'waits'] as const;
  expect(await standings()).toEqual([reads, reads, reads, reads, waits, waits, waits]);
  await tabs[4]!.getByText('Four tabs of this browser read live calls').waitFor();
  const answers = tabs.map((tab) =>
    tab.evaluate(async (timeoutMs) => {
      const signal = AbortSignal.timeout(timeoutMs);
      return (await fetch('/console/session', { signal })).status;
    }, WAIT.timeout),
  );
  expect(await Promise.all(answers)).toEqual(tabs.map(() => 200));
  const other = await first.context().newPage();
  await other.goto(`${world.url}/webhooks`);
  await other.getByRole('heading', { name: 'Webhooks' }).waitFor();

  // A hidden tab makes room at once, and waits for a place when it is shown again.
  await turn(first, 'hidden');
  await expect
    .poll(standings, AT_ONCE)
    .toEqual(['connecting', reads, reads, reads, reads, waits, waits]);
  await turn(first, 'visible');
  await expect.poll(standings, WAIT).toEqual([waits, reads, reads, reads, reads, waits, waits]);
  const closed = tabs.splice(1, 3);
  for (const tab of closed) await tab.close();
  await expect.poll(standings, WAIT).toEqual([reads, reads, reads, reads]);
  await first.getByText('calls during that time are not shown').waitFor();

  // A tab that is hidden keeps its place until another one waits.
  await turn(first, 'hidden');
  expect(await standings()).toEqual([reads, reads, reads, reads]);
  const fifth = await first.context().newPage();
  await fifth.goto(`${world.url}/live`);
  await standingOf(fifth).getByText(reads).waitFor(AT_ONCE);
  await expect.poll(standings, WAIT).toEqual(['connecting', reads, reads, reads]);
  await first.context().close();
});

test('a tab that is opened in the background reads no call before it is shown', async () => {
  const page = await world.demoPage();
  const tails: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/v1/stream')) tails.push(request.url());
  });
  await page.addInitScript(() =>
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: 'hidden' }),
  );
  await page.goto(`${world.url}/live`);
  await page.getByText('No call has come yet').waitFor();
  await page.waitForLoadState('networkidle');
  expect(tails).toEqual([]);
  await turn(page, 'visible');
  await page.getByText('listening').waitFor();
  // It has missed no call that it was to show.
  expect(await page.getByText('calls during that time are not shown').count()).toBe(0);
  await page.context().close();
});
