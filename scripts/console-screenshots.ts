/// <reference lib="dom" />
/**
 * `npm run screenshots`: pictures of the web console for the documentation, of a demo that is started for them in a
 * temporary directory. Writes `docs/images/console-….png`, and the page that shows them (`console-pictures.ts`).
 *
 * Times and ids differ in each run. So a picture is written only if its page has other elements, other words or another
 * style than the page of the picture that is there.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../benchmarks/src/console-browser.ts';
import {
  type PictureName,
  PICTURES,
  PICTURES_PAGE,
  pageDigestOf,
  picturesPage,
  withPageDigest,
} from './console-pictures.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const IMAGES = join(ROOT, 'docs/images');
const PORTS = {
  INTAKE_PORT: 18_080,
  API_PORT: 18_090,
  WORKER_PORT: 18_092,
  SIMULATOR_PORT: 18_091,
};
const INTAKE = `http://127.0.0.1:${PORTS.INTAKE_PORT}`;
const API = `http://127.0.0.1:${PORTS.API_PORT}`;
const RECEIVER_PORT = 18_099;

/** Taken in dark colours too, for the README and the guide. */
const IN_BOTH: ReadonlySet<PictureName> = new Set(['live', 'webhook']);

/** How to open each screen, and the text that shows it is complete. */
const SCREENS: Readonly<Record<PictureName, { readonly path: string; readonly shown: string }>> = {
  overview: { path: '/', shown: 'Overview' },
  live: { path: '/live', shown: 'listening' },
  event: { path: '/events/order-ada', shown: 'Order Completed' },
  issues: { path: '/issues', shown: 'invalid' },
  webhook: { path: '/webhooks/2', shown: 'Delivery 1 gets 500' },
  person: { path: '/people/ada', shown: 'ada@example.com' },
  audit: { path: '/audit', shown: 'Data warehouse' },
  billing: { path: '/billing', shown: 'Credits' },
  fleet: { path: '/fleet', shown: 'intake' },
  reference: { path: '/docs/reporting-webhooks/createReportingWebhook', shown: 'curl' },
};

const directory = await mkdtemp(join(tmpdir(), 'sluice-screenshots-'));
const demo = spawn(
  process.execPath,
  ['--disable-warning=ExperimentalWarning', join(ROOT, 'packages/standalone/src/main.ts')],
  {
    env: {
      PATH: process.env['PATH'],
      SLUICE_DIRECTORY: directory,
      ...Object.fromEntries(Object.entries(PORTS).map(([name, port]) => [name, String(port)])),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  },
);
// One path takes deliveries, the other fails.
const receiver = createServer((request, response) => {
  request.resume();
  response.writeHead(request.url === '/crm' ? 500 : 200, { 'content-type': 'application/json' });
  response.end(request.url === '/crm' ? '{"error":"database down"}' : '{"ok":true}');
});
try {
  receiver.listen(RECEIVER_PORT, '127.0.0.1');
  await isReady();
  await fill();
  await takePictures();
  await writeFile(join(ROOT, PICTURES_PAGE), picturesPage());
} finally {
  receiver.close();
  receiver.closeAllConnections();
  if (demo.exitCode === null) {
    demo.kill('SIGTERM');
    await once(demo, 'close');
  }
  await rm(directory, { recursive: true, force: true });
}

async function isReady(): Promise<void> {
  let output = '';
  demo.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  while (!output.includes('Sluice is ready')) {
    if (demo.exitCode !== null) throw new Error(`npm start ended:\n${output}`);
    await Promise.race([once(demo.stdout, 'data'), once(demo, 'close')]);
  }
}

async function post(url: string, authorization: string, body: object): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'x-strict-mode': '1' },
    body: JSON.stringify(body),
  });
  await answer.arrayBuffer();
}

function send(path: string, body: object): Promise<void> {
  return post(`${INTAKE}${path}`, `Basic ${btoa(`${DEMO.writeKey}:`)}`, body);
}

/** Two webhooks, one of which fails, and people who change. */
async function fill(): Promise<void> {
  for (const [name, path] of [
    ['Data warehouse', 'warehouse'],
    ['CRM', 'crm'],
  ])
    await post(`${API}/v1/reporting_webhooks`, `Bearer ${DEMO.appKey}`, {
      name,
      endpoint: `http://127.0.0.1:${RECEIVER_PORT}/${path}`,
      events: ['customer_subscribed', 'customer_unsubscribed'],
    });
  for (const userId of ['ada', 'grace', 'lin', 'edsger', 'barbara', 'alan']) {
    const traits = { email: `${userId}@example.com`, plan: 'pro', unsubscribed: false };
    await send('/v1/identify', { userId, traits });
    await send('/v1/track', {
      ...{ userId, event: 'Order Completed', messageId: `order-${userId}` },
      properties: { total: 12 },
    });
  }
}

async function takePictures(): Promise<void> {
  await mkdir(IMAGES, { recursive: true });
  const browser = await launchBrowser();
  const digests = new Map<PictureName, string>();
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, colorScheme });
    await page.goto(API);
    await page.getByRole('button', { name: 'Open the demo' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    for (const { name } of PICTURES) {
      if (colorScheme === 'dark' && !IN_BOTH.has(name)) continue;
      const { path, shown } = SCREENS[name];
      await page.goto(`${API}${path}`);
      await page.locator('main').getByText(shown).first().waitFor();
      if (name === 'live') await showCalls(page, colorScheme === 'light' ? 'barbara' : 'grace');
      if (name === 'webhook')
        await page.locator('.badge', { hasText: 'retrying' }).first().waitFor();
      await page.waitForLoadState('load');
      await page.waitForFunction(() => document.querySelector('.waiting') === null);
      // Both colours are of one document, which some seconds later has other tries and calls.
      const digest = digests.get(name) ?? (await digestOf(page));
      digests.set(name, digest);
      await takePicture(page, `console-${name}-${colorScheme}.png`, digest);
    }
    await page.close();
  }
  await browser.close();
}

/** @param leaving - the person who unsubscribes, once. */
async function showCalls(page: Page, leaving: string): Promise<void> {
  for (const [userId, event] of [
    ['ada', 'Order Completed'],
    ['grace', 'Product Viewed'],
    ['lin', 'Order Refunded'],
    ['edsger', 'Product Added'],
  ])
    await send('/v1/track', { userId, event, properties: { total: 12 } });
  await send('/v1/track', { userId: 'alan', event: 7 });
  await send('/v1/identify', { userId: leaving, traits: { unsubscribed: true } });
  await page.getByText('event: invalid').waitFor();
  await page.getByText('customer_unsubscribed').first().waitFor();
}

const digestOf = async (page: Page): Promise<string> =>
  createHash('sha256')
    .update(await page.evaluate(describePage))
    .digest('hex');

/** Keeps a picture of the same page. */
async function takePicture(page: Page, name: string, digest: string): Promise<void> {
  const file = join(IMAGES, name);
  if (existsSync(file) && pageDigestOf(await readFile(file)) === digest) return;
  await writeFile(file, withPageDigest(await page.screenshot(), digest));
  console.log(`docs/images/${name}`);
}

/** In the page: its elements with their words, but without numbers and ids, each once, and its style. */
function describePage(): string {
  const withoutNumbers = (text: string): string =>
    text
      .replaceAll(/\b[0-9A-Z]{20,}\b|\b[0-9a-f]{8,}\b/g, 'id')
      .replaceAll(/\b\d[\d.,:]*(?: (?:ms|s|min|h)\b)?/g, '0');
  const elements = [...document.body.querySelectorAll('*')].map((element) => {
    const words = [...element.childNodes].flatMap((node) =>
      node.nodeType === Node.TEXT_NODE ? [node.textContent ?? ''] : [],
    );
    return `${element.tagName}.${element.getAttribute('class') ?? ''} ${withoutNumbers(words.join(' '))}`;
  });
  const rules = [...document.styleSheets].flatMap(({ cssRules }) =>
    [...cssRules].map(({ cssText }) => cssText),
  );
  return [...[...new Set(elements)].toSorted(), ...rules].join('\n');
}
