/**
 * Security: no address of the console shows the records of another account.
 *
 * The addresses are made from the table of screens (`SCREEN_PATHS`), so a new screen is opened too, and the test fails
 * if it has no id for a parameter.
 */
import { PART_PATHS, PORTAL_PATHS, SCREEN_PATHS } from '@sluice/api/console/console-files';
import type { BrowserContext, Page } from 'playwright-core';
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
  [second] = await Promise.all([makeRecords(world, SECOND), changeFirst()]);
  first = await makeRecords(world, FIRST);
});
afterAll(async () => {
  first.close();
  second.close();
  await world.close();
});

async function changeFirst(): Promise<void> {
  for (let count = 0; count < EARLIER_CHANGES; count++)
    await world.call(
      'PUT',
      `/v1/accounts/${FIRST.accountId}`,
      { account: { website: `https://${count}.${FIRST.marker}.example` } },
      FIRST.token,
    );
}

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

/** Pages of a session side by side: at each address a page waits until half a second had no call. */
const PAGES = 2;

/** @param see - called with the page at each address. */
async function openEach(
  { context }: Session,
  addresses: readonly Address[],
  see: (shown: { readonly html: string; readonly main: string }, address: Address) => void,
): Promise<void> {
  const waiting = addresses.values();
  const openWaiting = async (): Promise<void> => {
    const page = await context.newPage();
    for (const address of waiting) {
      const html = await openAddress(page, address.path);
      see({ html, main: await page.locator('main').innerText() }, address);
    }
    await page.close();
  };
  await Promise.all(Array.from({ length: PAGES }, openWaiting));
}

/** The calls of all pages of a session, and the answers. */
function watchCalls(context: BrowserContext) {
  const paths = new Set<string>();
  const answers: Promise<string>[] = [];
  context.on('response', (response) => {
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

/** Of an administrator, with a page that is open. */
interface Session {
  readonly page: Page;
  readonly context: BrowserContext;
}

async function sessionOf({ accountId }: AccountUnderTest): Promise<Session> {
  const { page } = await world.userPage('account_admin', accountId);
  return { page, context: page.context() };
}

test('a user of another account sees no record of an account by any address, and the user of the account sees each', async () => {
  const [own, other] = await Promise.all([sessionOf(FIRST), sessionOf(SECOND)]);
  const ofOwn = watchCalls(own.context);
  const ofOther = watchCalls(other.context);
  const addresses = addressesOf(first);

  // The marker is on each of these screens, so its absence is a proof.
  const unseen: string[] = [];
  const seen: string[] = [];
  const found: string[] = [];
  const seeOwn = openEach(own, addresses, ({ html }, { pattern, path }) => {
    if (!namesFirst(html) && !WITHOUT_RECORDS.has(pattern)) unseen.push(path);
  });
  // The frame of all screens reads the workspace, so one address of each screen is opened with it.
  const named = addresses
    .filter(({ path }) => !path.includes('?'))
    .map(({ pattern, path }) => ({ pattern, path: `${path}?workspace=${FIRST.accountId}` }));
  const seeOther = openEach(
    other,
    [...addresses, ...named],
    ({ html, main }, { pattern, path }) => {
      if (namesFirst(html)) seen.push(path);
      const isOfRecord = pattern.includes(':') && !WITHOUT_RECORDS.has(pattern);
      if (isOfRecord && !NOT_FOUND.test(main)) found.push(`${path}: ${main}`);
    },
  );
  await Promise.all([seeOwn, seeOther]);
  expect(unseen).toEqual([]);
  for (const pattern of PORTAL_PATHS) {
    const ids = { ...first.portal, webhook_id: first.webhookId, name: 'type.a' };
    const shown = await openAddress(other.page, pathOf(pattern, { [pattern]: ids }));
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
    const called = await callInSession(other.page, paths, workspaceId);
    expect(called.filter(({ text }) => namesFirst(text))).toEqual([]);
    expect(called.filter(({ status }) => status === TOO_MANY || status >= 500)).toEqual([]);
    if (workspaceId === SECOND.accountId) continue;
    const admitted = called.filter(({ status, path }) => status < 400 && path.startsWith('/v1/'));
    expect(admitted.map(({ path }) => path)).toEqual([]);
  }
  await own.context.close();
  await other.context.close();
});

test('of ids that both accounts have, each user sees the own record', async () => {
  const see = async (
    account: AccountUnderTest,
    another: AccountUnderTest,
    { sharedIds }: AccountRecords,
  ): Promise<void> => {
    const session = await sessionOf(account);
    const addresses = Object.keys(sharedIds).map((pattern) => ({
      pattern,
      path: pathOf(pattern, sharedIds),
    }));
    const found: Record<string, { own: boolean; foreign: boolean }> = {};
    await openEach(session, addresses, ({ html }, { path }) => {
      found[path] = { own: html.includes(account.marker), foreign: html.includes(another.marker) };
    });
    expect(found).toEqual(
      Object.fromEntries(addresses.map(({ path }) => [path, { own: true, foreign: false }])),
    );
    await session.context.close();
  };
  await Promise.all([see(FIRST, SECOND, first), see(SECOND, FIRST, second)]);
});

test('the live tail has lines of the own workspace alone', async () => {
  const { page, context } = await sessionOf(SECOND);
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
  await context.close();
});
