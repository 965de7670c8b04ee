/// <reference lib="dom" />
/** The console's page in Chromium, signed in to the demo, and its costs. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type CDPSession,
  chromium,
  type Page,
} from 'playwright-core';

const NPM_PATH_FILE = join(import.meta.dirname, '../../node_modules/.sluice-chromium/path');
/** As in the tests: the browser has no background work of its own. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

/** @throws Error if there is no Chromium. */
export async function launchBrowser(): Promise<Browser> {
  const ofNpm = existsSync(NPM_PATH_FILE) ? readFileSync(NPM_PATH_FILE, 'utf8') : undefined;
  const commands = [
    process.env['TEST_CHROMIUM'],
    '/usr/bin/chromium',
    '/usr/bin/google-chrome',
    ofNpm,
  ];
  const executablePath = commands.find(
    (command) =>
      command !== undefined &&
      spawnSync(command, ['--version', '--no-sandbox'], { stdio: 'ignore' }).status === 0,
  );
  if (executablePath === undefined)
    throw new Error('no Chromium: node scripts/install.mjs --with-chromium, or set TEST_CHROMIUM');
  return chromium.launch({ executablePath, args: FLAGS });
}

/** @returns a context whose pages are signed in to the demo. */
export async function signIn(browser: Browser, url: string): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'Open the demo' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.close();
  return context;
}

export interface PageTimes {
  readonly paintMs: number;
  /** Until all data of the screen is shown. */
  readonly shownMs: number;
  /** Cumulative layout shift, until a second later. */
  readonly shift: number;
}

/** Opens the address as a reload does, with all that the browser keeps. */
export async function timesOf(context: BrowserContext, url: string): Promise<PageTimes> {
  const page = await context.newPage();
  await page.goto(url, { waitUntil: 'commit' });
  const shown = await page.waitForFunction(
    () =>
      document.querySelector('main h1, main h2') !== null &&
      document.querySelector('.waiting') === null &&
      performance.getEntriesByName('first-contentful-paint').length > 0 &&
      performance.now(),
    undefined,
    { polling: 'raf' },
  );
  const shownMs = Number(await shown.jsonValue());
  const { paintMs, shift } = await page.evaluate(
    () =>
      new Promise<{ paintMs: number; shift: number }>((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries())
            sum += (entry as PerformanceEntry & { readonly value: number }).value;
        }).observe({ type: 'layout-shift', buffered: true });
        const paint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN;
        setTimeout(() => resolve({ paintMs: paint, shift: sum }), 1_000);
      }),
  );
  await page.close();
  return { paintMs, shownMs, shift };
}

/** An entry of a trace; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly ts: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
}

const FRAME = 'BeginMainThreadFrame';
/** Scripts and layout; painting is the machine's. */
const COUNTED: ReadonlySet<string> = new Set([
  ...['FunctionCall', 'EvaluateScript', 'EventDispatch', 'FireAnimationFrame', 'TimerFire'],
  ...['RunMicrotasks', 'V8.GC_MC_BACKGROUND_MARKING', 'MinorGC', 'MajorGC'],
  ...['Layout', 'UpdateLayoutTree', 'Layerize', 'PrePaint'],
]);

/** @returns script and layout of each frame that was drawn while `act` ran, in milliseconds. */
export async function framesDuring(
  browser: Browser,
  page: Page,
  act: () => Promise<void>,
): Promise<number[]> {
  await browser.startTracing(page, {
    categories: [
      ...['-*', 'devtools.timeline', 'disabled-by-default-devtools.timeline'],
      // The begin of each frame.
      'disabled-by-default-devtools.timeline.frame',
    ],
  });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as {
    readonly traceEvents: readonly TraceEvent[];
  };
  return frameCosts(trace.traceEvents);
}

/** Of the thread with the most frames, the page's. */
function frameCosts(events: readonly TraceEvent[]): number[] {
  const frames = Map.groupBy(
    events.filter(({ name }) => name === FRAME),
    ({ pid, tid }) => `${pid} ${tid}`,
  );
  const [thread, marks] = [...frames].toSorted(
    ([, one], [, other]) => other.length - one.length,
  )[0] ?? ['', []];
  const spans = events
    .filter(
      ({ name, ph, pid, tid }) => ph === 'X' && COUNTED.has(name) && `${pid} ${tid}` === thread,
    )
    .map(({ ts, dur = 0 }) => ({ start: ts, end: ts + dur }))
    .toSorted((one, other) => one.start - other.start);
  const starts = marks.map(({ ts }) => ts).toSorted((one, other) => one - other);
  const costs = starts.map(() => 0);
  let place = 0;
  let countedUntil = 0;
  for (const { start, end } of spans) {
    while (place + 1 < starts.length && (starts[place + 1] ?? Infinity) <= start) place += 1;
    // One stands within another: each microsecond counts once.
    const from = Math.max(start, countedUntil);
    if (end <= from || start < (starts[0] ?? 0)) continue;
    costs[place] = (costs[place] ?? 0) + (end - from) / 1_000;
    countedUntil = end;
  }
  return costs;
}

/** The heap of the page's scripts after a collection, in bytes. */
export async function collectedHeapBytes(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  return heapBytes(session);
}

/** The heap of the page's scripts as it is. */
export async function heapBytes(session: CDPSession): Promise<number> {
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize;
}

/** CPU seconds of all pages so far; the process that draws by software, in place of a graphics card, is left out. */
export async function pageCpuSeconds(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo
    .filter(({ type }) => type === 'renderer')
    .reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** From a click to the page's answer to it, as who clicks sees it, in milliseconds. */
export async function clickMs(page: Page): Promise<number> {
  const startedAtMs = performance.now();
  await page.evaluate(
    () =>
      new Promise<void>((resolve, reject) => {
        const button = document.querySelector<HTMLButtonElement>('main button[aria-pressed]');
        if (!button) return reject(new Error('there is no button to pause'));
        const before = button.getAttribute('aria-pressed');
        const look = (): void => {
          if (button.getAttribute('aria-pressed') !== before) resolve();
          else requestAnimationFrame(look);
        };
        button.click();
        return look();
      }),
  );
  return performance.now() - startedAtMs;
}

export function p95(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * 0.95)] ?? NaN;
}
