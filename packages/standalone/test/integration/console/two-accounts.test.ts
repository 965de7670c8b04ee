/**
 * Security: no address of the console shows the records of another account.
 *
 * The addresses are made from the table of screens (`SCREEN_PATHS`), so a new screen is opened too, and the test fails
 * if it has no id for a parameter.
 */
import { PART_PATHS, PORTAL_PATHS, SCREEN_PATHS } from '@sluice/api/console/console-files';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  type AccountRecords,
  type AccountUnderTest,
  FIRST,
  type IdsOfRoutes,
  makeRecords,
  SECOND,
} from './account-records.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

// Each opens some dozens of screens, one after another.
vi.setConfig({ testTimeout: 600_000 });

/** Screens that show no record, also to the account's own user. */
const WITHOUT_RECORDS: ReadonlySet<string> = new Set([
  '/start',
  '/device',
  '/docs/:tag',
  '/docs/:tag/:operation',
]);
/** Ids of screens that are the same for all accounts. */
const OF_ALL: IdsOfRoutes = {
  '/docs/:tag': { tag: 'all' },
  '/docs/:tag/:operation': { tag: 'reporting-webhooks', operation: 'createReportingWebhook' },
};
/** Parameters of a part of a screen, beside the ids of the screen. */
const OF_PARTS = { delivery: 1, code: 'invalid', source: 'pipelines', field: 'timestamp' };
/** Screens that read the tail as long as they are open. */
const WITH_TAIL = /^\/(?:live|start)?(?:\?|$)/;
/** The tail never ends; its lines are on the page. */
const isTail = (url: string): boolean => url.includes('/v1/stream');
const TOO_MANY = 429;
/** Entries are numbered in each account: the number of a later one is of no entry of the other account. */
const EARLIER_CHANGES = 30;
/** The console's sentence for a record that the account does not have. */
const NOT_FOUND = /not found|No event with this id|There is no such/;

let world: ConsoleUnderTest;
let first: AccountRecords & { close(): void };
let second: AccountRecords & { close(): void };
beforeAll(async () => {
  // The addresses are opened faster than a person opens them.
  world = await startConsole({ API_RATE_LIMIT_PER_MINUTE: '10000' });
  second = await makeRecords(world, SECOND);
  for (let count = 0; count < EARLIER_CHANGES; count++)
    await world.call(
      'PUT',
      `/v1/accounts/${FIRST.accountId}`,
      { account: { website: `https://${count}.${FIRST.marker}.example` } },
      FIRST.token,
    );
  first = await makeRecords(world, FIRST);
});
afterAll(async () => {
  first.close();
  second.close();
  await world.close();
});

function pathOf(pattern: string, ids: IdsOfRoutes): string {
  const params = { ...OF_ALL, ...ids }[pattern] ?? {};
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => {
    const id = params[name];
    if (id === undefined) throw new Error(`no id for ${name} of ${pattern}`);
    return encodeURIComponent(id);
  });
}

interface Address {
  readonly pattern: string;
  readonly path: string;
}

/** Each screen, each part of one, and each query that names a record. */
const addressesOf = ({ ids, queries }: AccountRecords): Address[] => [
  ...SCREEN_PATHS.flatMap((pattern) => {
    const path = pathOf(pattern, ids);
    const withQueries = (queries[pattern] ?? []).map((query) => ({
      pattern,
      path: `${path}?${query}`,
    }));
    return [{ pattern, path }, ...withQueries];
  }),
  ...Object.entries(PART_PATHS).map(([part, pattern]) => ({
    pattern,
    path: pathOf(part, { [part]: { ...ids[pattern], ...OF_PARTS } }),
  })),
];

/** The page as it is drawn: its texts and its attributes. */
async function openAddress(page: Page, path: string): Promise<string> {
  await page.goto(`${world.url}${path}`);
  // A screen whose record is not found has no heading of its own.
  await page.locator('main h1, main h2, main [role=alert]').first().waitFor();
  await page.waitForFunction(() => document.querySelector('.waiting') === null);
  await page.waitForLoadState(WITH_TAIL.test(path) ? 'load' : 'networkidle');
  return page.content();
}

/** The calls of a page, and the answers. */
function watchCalls(page: Page) {
  const paths = new Set<string>();
  const answers: Promise<string>[] = [];
  page.on('response', (response) => {
    const request = response.request();
    const { pathname, search } = new URL(response.url());
    if (request.resourceType() !== 'fetch') return;
    if (request.method() === 'GET') paths.add(`${pathname}${search}`);
    if (isTail(pathname)) return;
    answers.push(
      response.text().then(
        (text) => `${response.status()} ${pathname}${search} ${text}`,
        // The page was left before the end of the answer.
        () => '',
      ),
    );
  });
  return { paths, answers: () => Promise.all(answers) };
}

/** Calls the API in the session of the page. @returns the status, the path and the answer of each. */
const callInSession = (
  page: Page,
  paths: readonly string[],
  workspaceId: number,
): Promise<{ status: number; path: string; text: string }[]> =>
  page.evaluate(
    async ([asked, workspace]) => {
      const found = [];
      for (const path of asked) {
        const answer = await fetch(path, { headers: { 'x-sluice-workspace': workspace } });
        const isEndless = answer.headers.get('content-type')?.startsWith('text/event-stream');
        const text = isEndless ? '' : await answer.text();
        if (isEndless) await answer.body?.cancel();
        found.push({ status: answer.status, path, text });
      }
      return found;
    },
    [paths, String(workspaceId)] as const,
  );

const namesFirst = (text: string): boolean => text.includes(FIRST.marker);
const adminOf = ({ accountId }: AccountUnderTest) => world.userPage('account_admin', accountId);

test('a user of another account sees no record of an account by any address, and the user of the account sees each', async () => {
  const { page: own } = await adminOf(FIRST);
  const { page: other } = await adminOf(SECOND);
  const ofOwn = watchCalls(own);
  const ofOther = watchCalls(other);
  const addresses = addressesOf(first);

  // The marker is on each of these screens, so its absence is a proof.
  const unseen: string[] = [];
  for (const { pattern, path } of addresses) {
    const shown = await openAddress(own, path);
    if (!namesFirst(shown) && !WITHOUT_RECORDS.has(pattern)) unseen.push(path);
  }
  expect(unseen).toEqual([]);

  const seen: string[] = [];
  const found: string[] = [];
  for (const { pattern, path } of addresses) {
    const named = `${path}${path.includes('?') ? '&' : '?'}workspace=${FIRST.accountId}`;
    for (const address of [path, named]) {
      if (namesFirst(await openAddress(other, address))) seen.push(address);
      const isOfRecord = pattern.includes(':') && !WITHOUT_RECORDS.has(pattern);
      const text = await other.locator('main').innerText();
      if (isOfRecord && !NOT_FOUND.test(text)) found.push(`${address}: ${text}`);
    }
  }
  for (const pattern of PORTAL_PATHS) {
    const ids = { ...first.portal, webhook_id: first.webhookId, name: 'type.a' };
    const shown = await openAddress(other, pathOf(pattern, { [pattern]: ids }));
    if (namesFirst(shown)) seen.push(pattern);
  }
  const answers = await ofOther.answers();
  expect(answers.length).toBeGreaterThan(addresses.length);
  expect({ seen, found, answers: answers.filter(namesFirst) }).toEqual({
    seen: [],
    found: [],
    answers: [],
  });

  // The calls behind the screens of the first, in the session of the second.
  const paths = [...ofOwn.paths];
  expect(paths.filter((path) => path.includes(`/accounts/${FIRST.accountId}/`))).not.toEqual([]);
  for (const workspaceId of [SECOND.accountId, FIRST.accountId]) {
    const called = await callInSession(other, paths, workspaceId);
    expect(called.filter(({ text }) => namesFirst(text))).toEqual([]);
    expect(called.filter(({ status }) => status === TOO_MANY || status >= 500)).toEqual([]);
    if (workspaceId === SECOND.accountId) continue;
    const admitted = called.filter(({ status, path }) => status < 400 && path.startsWith('/v1/'));
    expect(admitted.map(({ path }) => path)).toEqual([]);
  }
  await own.context().close();
  await other.context().close();
});

test('of ids that both accounts have, each user sees the own record', async () => {
  for (const [account, another, records] of [
    [FIRST, SECOND, first],
    [SECOND, FIRST, second],
  ] as const) {
    const { page } = await adminOf(account);
    for (const pattern of Object.keys(records.sharedIds)) {
      const path = pathOf(pattern, records.sharedIds);
      const shown = await openAddress(page, path);
      expect([path, shown.includes(account.marker)]).toEqual([path, true]);
      expect([path, shown.includes(another.marker)]).toEqual([path, false]);
    }
    await page.context().close();
  }
});

test('the live tail has lines of the own workspace alone', async () => {
  const { page } = await adminOf(SECOND);
  await page.goto(`${world.url}/live`);
  const own = page.getByText(`Tail ${SECOND.marker}`);
  const send = async ({ marker, writeKey, suffix }: AccountUnderTest): Promise<void> => {
    const event = { userId: `person-${suffix}`, event: `Tail ${marker}` };
    expect(await world.send('/v1/track', event, true, writeKey)).toBe(200);
  };
  await world.sendUntilShown(own, async () => {
    await send(FIRST);
    await send(SECOND);
  });
  expect(namesFirst(await page.content())).toBe(false);
  await page.context().close();
});
