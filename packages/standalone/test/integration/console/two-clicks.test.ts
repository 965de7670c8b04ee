/**
 * The twelve questions of the console's users.
 *
 * Each is answered at most two clicks from the overview: by the mouse, and by the keyboard alone. To paste an id into
 * the palette is one.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

const READY = { timeout: 60_000, interval: 100 };
const CLICKS_MAX = 2;

let world: ConsoleUnderTest;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
const isSent = (count: number) =>
  vi.waitFor(() => expect(receiver.bodies.length).toBe(count), READY);
beforeAll(async () => {
  world = await startConsole();
  receiver = await startReceiver();
  receiver.answer.status = 200;
  await world.makeWebhook('hook', receiver.url);
  const subscribe = (userId: string) =>
    world.send('/v1/identify', {
      userId,
      traits: { email: `${userId}@example.com`, unsubscribed: false },
    });
  await subscribe('ada');
  await isSent(1);
  receiver.answer.status = 500;
  await subscribe('bob');
  await isSent(2);
  await world.send('/v1/track', { userId: 'ada', event: 'Order', messageId: 'asked-1' });
  await world.send('/v1/track', { event: 'nobody' }, false);
  await world.fleet.event('ada', 'Order');
  const account = `${world.url}/v1/accounts/${DEMO.accountId}`;
  const call = async (method: string, path: string, token: string, body: object) => {
    const answer = await fetch(`${account}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as { secret: string };
  };
  const { secret } = await call('POST', '/api_credentials', DEMO.accountToken, {
    type: 'service_account',
    name: 'Deploy',
    role: 'account_admin',
  });
  await call('PUT', '', secret, { account: { website: 'https://asked.example' } });
});
afterAll(async () => {
  receiver.close();
  await world.close();
});

/** A step: a link or a button by its name, or a text for the palette. */
type Step = { readonly press: string | RegExp } | { readonly paste: string; readonly go: string };

/** All of them are the answer. */
type Answer = Locator | readonly Locator[];

const QUESTIONS: readonly (readonly [string, readonly Step[], (page: Page) => Answer])[] = [
  [
    'Where is my event?',
    [{ paste: 'asked-1', go: 'Event asked-1' }],
    (page) => page.getByText('Processed', { exact: true }),
  ],
  [
    'Do my calls arrive right now, and which are refused?',
    [{ press: /of them refused/ }],
    (page) => page.getByText('listening'),
  ],
  [
    'Why was my call refused or changed?',
    [{ press: 'required' }],
    (page) =>
      page.getByRole('row', { name: /required/ }).getByText('userId or anonymousId is required'),
  ],
  [
    'Why does this endpoint get nothing?',
    [{ press: /oldest delivery that fails/ }],
    (page) => page.getByText(/^Delivery 2 gets 500 since /),
  ],
  [
    'What exactly did you send, what did we answer?',
    [{ press: /oldest delivery that fails/ }, { press: 'See its attempts' }],
    (page) => page.getByRole('region', { name: 'Body of the answer' }),
  ],
  [
    'How do I send it again, and to how many would that be?',
    [{ press: /oldest delivery that fails/ }, { press: 'Replay …' }],
    (page) => page.getByText('1 delivery matches'),
  ],
  [
    'Who is this person to us?',
    [{ paste: 'ada', go: 'Person ada' }],
    (page) => page.getByText('ada@example.com').first(),
  ],
  [
    'What did that key do, and is it still used?',
    [{ press: 'Keys' }, { press: 'Deploy' }],
    (page) => [page.getByText(/^Last used at /), page.getByRole('link', { name: 'account Demo' })],
  ],
  [
    'Who changed this setting, from what to what?',
    [{ press: /^account Demo/ }],
    (page) => page.locator('ins').getByText('https://asked.example'),
  ],
  [
    'What will I be charged, and why is that the number?',
    [{ press: 'Billing' }],
    (page) => [
      page.getByText(/no invoice comes by itself\. Usage beyond the plan costs \$[\d.]+\.$/),
      page.getByRole('row', { name: /^profiles/ }),
    ],
  ],
  [
    'Is the fleet well, and what is behind?',
    [{ press: 'Fleet' }],
    (page) => [
      page.getByRole('region', { name: 'To act on' }).getByText(/^Everything is well|Runbook of/),
      page.getByText(/^1 of 1 webhooks, the oldest \d/),
    ],
  ],
  [
    'How do I begin?',
    [{ press: 'Start' }],
    (page) => page.getByText('Calls from now on are shown here'),
  ],
];

test('there are twelve questions, each at most two clicks away', () => {
  expect(QUESTIONS.length).toBe(12);
  for (const [question, steps] of QUESTIONS)
    expect([question, steps.length <= CLICKS_MAX]).toEqual([question, true]);
});

/** Elements that can be pressed; the first of its name, as a reader takes it. */
const targetOf = (page: Page, name: string | RegExp): Locator =>
  page.getByRole('link', { name }).or(page.getByRole('button', { name })).first();

/** @throws if the answer does not appear. */
async function waitForAnswer(question: string, answer: Answer): Promise<void> {
  await Promise.all([answer].flat().map((each) => each.waitFor())).catch((cause: unknown) => {
    throw new Error(`not answered: ${question}`, { cause });
  });
}

/** A line with the clicks, and the time from the first click to the answer; `--reporter verbose` prints it. */
const timeText = (question: string, clickCount: number, begunAtMs: number): string =>
  `${question} ${clickCount} ${clickCount === 1 ? 'click' : 'clicks'}, ${Math.round(performance.now() - begunAtMs)} ms`;

test('by the mouse', async ({ annotate }) => {
  const page = await world.demoPage();
  for (const [question, steps, answerOf] of QUESTIONS) {
    await page.goto(world.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    let clickCount = 0;
    const begunAtMs = performance.now();
    for (const step of steps) {
      clickCount++;
      if ('press' in step) await targetOf(page, step.press).click();
      else {
        await world.pressUntilShown(
          page,
          ['Control+k'],
          page.getByRole('dialog', { name: 'Go to' }),
        );
        await page.getByRole('combobox').fill(step.paste);
        await page.getByRole('option', { name: step.go }).click();
      }
    }
    await waitForAnswer(question, answerOf(page));
    await annotate(timeText(question, clickCount, begunAtMs), 'time');
    expect(clickCount).toBeLessThanOrEqual(CLICKS_MAX);
  }
  await page.context().close();
});

test('by the keyboard alone', async ({ annotate }) => {
  const page = await world.demoPage();
  const focus = async (target: Locator): Promise<void> => {
    await target.waitFor();
    for (let count = 0; count < 80; count++) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${target.toString()}`);
  };
  let answeredCount = 0;
  for (const [question, steps, answerOf] of QUESTIONS) {
    await page.goto(world.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const begunAtMs = performance.now();
    for (const step of steps) {
      if ('press' in step) {
        await focus(targetOf(page, step.press));
        await page.keyboard.press('Enter');
        continue;
      }
      await world.pressUntilShown(page, ['Control+k'], page.getByRole('dialog', { name: 'Go to' }));
      await page.keyboard.type(step.paste);
      const option = page.getByRole('option', { name: step.go });
      await option.waitFor();
      while ((await option.getAttribute('aria-selected')) !== 'true')
        await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
    }
    await waitForAnswer(question, answerOf(page));
    await annotate(timeText(question, steps.length, begunAtMs), 'time');
    answeredCount++;
  }
  expect(answeredCount).toBe(12);
  await page.context().close();
}, 240_000);
