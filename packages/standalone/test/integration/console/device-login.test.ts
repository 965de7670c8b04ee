/** May I use the command line as myself? `sluice login` shows a code. */
import { readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { runProgram, SLUICE } from '../program-under-test.ts';
import { violationsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('a user ends a program on the screen of settings, by the keyboard alone', async ({
  onTestFinished,
}) => {
  const page = await world.newPage();
  onTestFinished(() => page.context().close());
  await page.goto(`${world.url}/device`);
  await world.giveMailedCode(page, (await world.insertUser('member')).email);
  // Against a stranger who sends a code (RFC 8628 §5.4).
  await page.getByText('If somebody sent you a code, do not type it').waitFor();
  const post = async (path: string, body: object) =>
    (
      await fetch(`${world.url}/v1/device_logins${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json() as Promise<Record<string, string>>;
  const login = await post('', { client_name: 'lost-laptop' });
  await page.getByLabel('Code of eight letters').fill(login['user_code'] ?? '');
  await page.keyboard.press('Enter');
  await page.getByText('lost-laptop').waitFor();
  await page.getByRole('button', { name: 'Let it in', exact: true }).press('Enter');
  await page.getByText('The program is let in.').first().waitFor();
  const { token } = await post('/token', { device_code: login['device_code'] });
  expect(token).toMatch(/^sa_/);

  await page.goto(`${world.url}/settings`);
  const row = page.getByRole('row', { name: /sluice login on lost-laptop/ });
  await row.getByRole('button', { name: 'End' }).press('Enter');
  await row.waitFor({ state: 'detached' });
  expect(await post('/revocation', { token })).toEqual({ revoked: false });
});

test('a user types the code of sluice login, by the keyboard alone, and the program reads the workspace', async ({
  onTestFinished,
}) => {
  const home = await mkdtemp(join(tmpdir(), 'sluice-home-'));
  onTestFinished(() => rm(home, { recursive: true }));
  const settings = { SLUICE_API_URL: world.url, XDG_CONFIG_HOME: home };
  const program = runProgram(SLUICE, ['login', '--profile', 'mine'], settings);
  const code = await vi.waitFor(
    () => {
      const found = /type the code ([A-Z]{4}-[A-Z]{4})/.exec(program.errors)?.[1];
      if (found === undefined) throw new Error(program.errors);
      return found;
    },
    { timeout: 60_000, interval: 100 },
  );
  expect(program.errors).toContain(`${world.url}/device`);

  const page = await world.newPage();
  onTestFinished(() => page.context().close());
  await page.goto(`${world.url}/device`);
  await world.giveMailedCode(page, (await world.insertUser('member')).email);
  const field = page.getByLabel('Code of eight letters');
  await field.waitFor();
  // A part that is hidden until the first data are there takes no focus.
  const hasFocus = () => field.evaluate((element) => element === document.activeElement);
  await expect.poll(hasFocus, { timeout: 60_000 }).toBe(true);
  expect(await violationsOf(page)).toEqual([]);
  await field.fill('BCDF-GHJK');
  await page.keyboard.press('Enter');
  await page.getByText('no program waits with this code').waitFor();
  await field.fill(code.toLowerCase());
  await page.keyboard.press('Enter');
  await page.getByText('Its machine calls itself').waitFor();
  // An Enter without reading refuses the program.
  const refusal = page.getByRole('button', { name: 'Do not let it in' });
  expect(await refusal.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.getByText('Workspace that it may read').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByText('The program is let in.').first().waitFor();

  expect(await program.ended).toBe(0);
  const file = join(home, 'sluice', 'profiles.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const { mine } = JSON.parse(readFileSync(file, 'utf8'));
  expect(mine).toMatchObject({ apiUrl: world.url, token: expect.stringMatching(/^sa_/) });
  for (const text of [program.output, program.errors]) {
    expect(text).not.toContain(mine.token);
    expect(text).not.toContain(mine.key);
  }
  const run = async (...words: string[]) => {
    const command = runProgram(SLUICE, [...words, '--profile', 'mine', '--json'], settings);
    return { code: await command.ended, errors: command.errors, output: command.output };
  };
  expect(await run('webhooks', 'list')).toMatchObject({ code: 0, errors: '' });

  // A member has no screen of keys: the own programs are among the settings.
  await page.goto(`${world.url}/settings`);
  const programs = page.getByRole('region', { name: 'Programs that act for you' });
  await programs.getByRole('rowheader', { name: /^sluice login on / }).waitFor();
  expect(await violationsOf(page)).toEqual([]);

  const left = await run('logout');
  expect({ ...left, output: JSON.parse(left.output) }).toEqual({
    code: 0,
    errors: '',
    output: { profile: 'mine', removed: true, revoked: true },
  });
  expect(await run('webhooks', 'list')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('no profile mine'),
  });
  // The API remembers a key that it knows for a second.
  const headers = { authorization: `Bearer ${mine.key}` };
  await expect
    .poll(async () => (await fetch(`${world.url}/v1/workspaces`, { headers })).status, WAIT)
    .toBe(401);
  await page.reload();
  await programs.getByText('None.').waitFor();
});
