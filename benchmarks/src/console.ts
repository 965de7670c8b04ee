/**
 * The bars of the web console that need a machine alone: times of its screens, frames of a list of 100,000 deliveries, memory,
 * and the live tail at 2,000 lines a second. Sizes, accessibility and clicks are in `npm test`.
 *
 * Everything shares the machine with the browser, which draws by software: times are upper bounds. Each ratio is a
 * measured value over its bar, so below 1 is within.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Browser, BrowserContext } from 'playwright-core';
import type { Bars } from './bars.ts';
import {
  clickMs,
  collectedHeapBytes,
  framesDuring,
  heapBytes,
  launchBrowser,
  p95,
  pageCpuSeconds,
  type PageTimes,
  signIn,
  timesOf,
} from './console-browser.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import { loadWithAutocannon } from './load.ts';
import { median, type Report } from './report.ts';
import { type World, withWorld } from './world.ts';

const PORTS = { intake: 18_120, api: 18_121, worker: 18_122 };
const DELIVERY_COUNT = 100_000;
const LINES_PER_SECOND = 2_000;
const CLICK_INTERVAL_MS = 5_000;
const MB = 2 ** 20;

/** The divisors of the measured values. */
const LIMITS = {
  'first paint': 500,
  'data shown': 1_000,
  'layout shift': 0.01,
  'rows of the list': 60,
  'frame of the list, p95': 8,
  'memory of the list': 20 * MB,
  'cpu of the tail': 0.3,
  'heap of the tail': 120 * MB,
  'click in the tail, p95': 100,
} as const;

type Measured = Record<keyof typeof LIMITS, number>;

export const CONSOLE_BARS: Bars = {
  ...Object.fromEntries(Object.keys(LIMITS).map((name) => [`${name}/limit`, { atMost: 1 }])),
  'lines counted/sent': { atLeast: 1 },
  'lines not shown/sent': { atMost: 0 },
};

export async function benchConsole(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '9' },
      /** Of the list, and of the tail. */
      seconds: { type: 'string', default: '600' },
    },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  return withWorld('none', async (world) => {
    const url = await startServices(world);
    const webhookId = await fillDeliveries(world);
    const browser = await launchBrowser();
    world.onClose(() => browser.close());
    const context = await signIn(browser, url);
    const screens = await measureScreens(context, url, webhookId, rounds);
    const list = await measureList(browser, context, `${url}/webhooks/${webhookId}`, seconds);
    const tail = await measureTail(browser, context, `${url}/live`, seconds);
    const worst = (of: (times: PageTimes) => number): number =>
      Math.max(...Object.values(screens).map((times) => median(times.map(of))));
    const measured: Measured = {
      'first paint': worst(({ paintMs }) => paintMs),
      'data shown': worst(({ shownMs }) => shownMs),
      'layout shift': worst(({ shift }) => shift),
      ...list.measured,
      ...tail.measured,
    };
    for (const [name, value] of Object.entries(measured))
      console.log(`${name.padEnd(24)} ${value.toFixed(3)} of ${LIMITS[name as keyof Measured]}`);
    return {
      bench: 'console',
      ratios: {
        ...Object.fromEntries(
          Object.entries(measured).map(([name, value]) => [
            `${name}/limit`,
            value / LIMITS[name as keyof Measured],
          ]),
        ),
        'lines counted/sent': tail.counted / tail.sent,
        'lines not shown/sent': tail.notShown / tail.sent,
      },
      rates: { 'lines sent': tail.sent / seconds },
      latencyMs: {
        'first paint': measured['first paint'],
        'data shown': measured['data shown'],
        'frame of the list, p95': measured['frame of the list, p95'],
        'click in the tail, p95': measured['click in the tail, p95'],
      },
      details: {
        rounds,
        seconds,
        measured,
        frames: list.frameCount,
        tail,
        browser: browser.version(),
      },
      versions: world.versions,
    };
  });
}

async function startServices(world: World): Promise<string> {
  const script = pathToFileURL(join(import.meta.dirname, '../../scripts/build-console.mjs')).href;
  const { buildConsole } = (await import(script)) as { buildConsole: () => Promise<string> };
  const directory = await buildConsole();
  const environment = { REDIS_URL: world.redisServer.url, QUEUE_PREFIX: 'console' };
  await world.startService('intake', PORTS.intake, environment);
  await world.startService('worker', PORTS.worker, environment);
  const { url } = await world.startService('api', PORTS.api, {
    ...environment,
    API_RATE_LIMIT_PER_MINUTE: '0',
    CONSOLE_DIRECTORY: directory,
    CONSOLE_INTAKE_URL: `http://127.0.0.1:${PORTS.intake}`,
  });
  return url;
}

/** An idle webhook with 100,000 finished deliveries. */
async function fillDeliveries({ database }: World): Promise<number> {
  await replaceWebhooks(database, [endpointOf(0, 9)]);
  const { rows } = await sql<{ webhookId: number }>`
    select webhook_id as "webhookId" from webhooks where environment_id = ${DEMO.environmentId} limit 1`.execute(
    database,
  );
  const webhookId = rows[0]?.webhookId ?? NaN;
  const key = sql`${DEMO.environmentId}, ${webhookId}`;
  await sql`
    with log as (
      insert into delivery_log (environment_id, webhook_id, sequence, occurred_at, event_id, event_type, body)
      select ${key}, n, now(), 'event-' || n, 'customer_subscribed', '{}' from generate_series(1, ${DELIVERY_COUNT}) n
    ), attempts as (
      insert into delivery_attempts
        (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, status, outcome)
      select ${key}, n, 1, 5, now(), 200, 'delivered' from generate_series(1, ${DELIVERY_COUNT}) n)
    update lanes set last_sequence = ${DELIVERY_COUNT}, cursor_sequence = ${DELIVERY_COUNT},
                     attempted_sequence = ${DELIVERY_COUNT}
     where environment_id = ${DEMO.environmentId} and webhook_id = ${webhookId}`.execute(database);
  return webhookId;
}

async function measureScreens(
  context: BrowserContext,
  url: string,
  webhookId: number,
  rounds: number,
): Promise<Record<string, PageTimes[]>> {
  const paths = [
    '/',
    '/live',
    '/webhooks',
    `/webhooks/${webhookId}`,
    '/people',
    '/audit',
    '/billing',
  ];
  const times: Record<string, PageTimes[]> = {};
  // The first round warms the caches for the others.
  for (let round = 0; round <= rounds; round += 1)
    for (const path of paths) {
      const measured = await timesOf(context, `${url}${path}`);
      if (round > 0) (times[path] ??= []).push(measured);
    }
  for (const [path, all] of Object.entries(times))
    console.log(
      `${path.padEnd(14)} first paint ${median(all.map(({ paintMs }) => paintMs)).toFixed(0)} ms, ` +
        `data shown ${median(all.map(({ shownMs }) => shownMs)).toFixed(0)} ms`,
    );
  return times;
}

async function measureList(
  browser: Browser,
  context: BrowserContext,
  address: string,
  seconds: number,
) {
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await page.goto(address);
  const list = page.getByRole('region', { name: 'All deliveries, newest first' });
  await list.getByRole('button', { name: String(DELIVERY_COUNT), exact: true }).waitFor();
  await list.focus();
  let rowCount = 0;
  const scroll = async (durationMs: number): Promise<void> => {
    const endsAtMs = performance.now() + durationMs;
    for (let turn = 0; performance.now() < endsAtMs; turn += 1) {
      // A held key, and now and then to the other end.
      await page.keyboard.press(
        turn % 40 === 39 ? (turn % 80 === 79 ? 'Home' : 'End') : 'PageDown',
      );
      rowCount = Math.max(rowCount, await list.locator('tbody tr').count());
    }
  };
  await scroll(5_000);
  const before = await collectedHeapBytes(session);
  // A trace of minutes would not fit into memory.
  const frames = await framesDuring(browser, page, () => scroll(10_000));
  await scroll(seconds * 1_000);
  const after = await collectedHeapBytes(session);
  await page.close();
  if (frames.length === 0) throw new Error('the trace has no frame');
  return {
    frameCount: frames.length,
    measured: {
      // Both gaps are rows too.
      'rows of the list': rowCount - 2,
      'frame of the list, p95': p95(frames),
      'memory of the list': Math.abs(after - before),
    },
  };
}

async function measureTail(
  browser: Browser,
  context: BrowserContext,
  address: string,
  seconds: number,
) {
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await page.goto(address);
  const standing = page.locator('.standing');
  await standing.getByText('listening').waitFor();
  // Apart: a tail that drops lines counts them as not shown, and they are no lines that the page has read.
  const countOf = async (name: 'lines' | 'not shown'): Promise<number> => {
    const [text = '0'] = await standing.locator(`[data-count="${name}"]`).allInnerTexts();
    return Number(text);
  };
  const takenBefore = await operationsTaken();
  const cpuBefore = await pageCpuSeconds(browser);
  const startedAtMs = performance.now();
  const sending = loadWithAutocannon({
    url: `http://127.0.0.1:${PORTS.intake}/v1/track`,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
    },
    bodies: [
      JSON.stringify({ userId: 'ada', event: 'Order Completed', properties: { total: 12 } }),
    ],
    connections: 20,
    durationSeconds: seconds,
    requestsPerSecond: LINES_PER_SECOND,
  });
  const clicks: number[] = [];
  let heap = 0;
  for (let atMs = CLICK_INTERVAL_MS; atMs < seconds * 1_000; atMs += CLICK_INTERVAL_MS) {
    await sleep(Math.max(0, startedAtMs + atMs - performance.now()));
    // To pause, and to go on.
    clicks.push(await clickMs(page), await clickMs(page));
    heap = Math.max(heap, await heapBytes(session));
  }
  const result = await sending;
  const cpuSeconds = (await pageCpuSeconds(browser)) - cpuBefore;
  const elapsedSeconds = (performance.now() - startedAtMs) / 1_000;
  if (result.failures > 0) throw new Error(`${result.failures} calls were refused or broke off`);
  // The load ends without the answers of its last calls: intake counts them.
  const sent = (await operationsTaken()) - takenBefore;
  // The last lines are on their way.
  const deadlineMs = performance.now() + 30_000;
  let counted = 0;
  let notShown = 0;
  for (;;) {
    counted = await countOf('lines');
    notShown = await countOf('not shown');
    if (counted + notShown >= sent || performance.now() >= deadlineMs) break;
    await sleep(200);
  }
  await page.close();
  if (counted + notShown > sent)
    throw new Error(`${counted} lines counted and ${notShown} not shown of ${sent}`);
  return {
    sent,
    counted,
    notShown,
    measured: {
      'cpu of the tail': cpuSeconds / elapsedSeconds,
      'heap of the tail': heap,
      'click in the tail, p95': p95(clicks),
    },
  };
}

async function operationsTaken(): Promise<number> {
  const metrics = await fetch(`http://127.0.0.1:${PORTS.intake}/metrics`);
  const [, count] =
    /^sluice_intake_operations_total(?:\{[^}]*\})? (\d+)/m.exec(await metrics.text()) ?? [];
  if (count === undefined) throw new Error('intake does not count its operations');
  return Number(count);
}
