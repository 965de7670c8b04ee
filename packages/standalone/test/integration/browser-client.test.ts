/**
 * The published browser client, unmodified, in a page.
 *
 * Every call that it has is here with its request, the status of the answer, and the effect read back. A method that
 * the client gains and these lists lack fails a test. A file of its own: jsdom replaces the process's `fetch`
 * dispatcher, which other clients would notice.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { JSDOM, VirtualConsole } from 'jsdom';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

type Call = (...arguments_: unknown[]) => Promise<unknown>;
type Method =
  | 'alias'
  | 'group'
  | 'identify'
  | 'page'
  | 'pageview'
  | 'screen'
  | 'track'
  | 'trackClick'
  | 'trackForm'
  | 'trackLink'
  | 'trackSubmit';
interface AnalyticsBrowser {
  load(settings: { writeKey: string; cdnURL: string }): Promise<[Record<Method, Call>]>;
}

/** Methods for the client in its page; they are no calls. */
const LOCAL_METHODS = [
  '_dispatch', 'addDestinationMiddleware', 'addSourceMiddleware', 'constructor', 'debug', 'deregister', 'emit',
  'failedInitializations', 'initialize', 'Integrations', 'noConflict', 'normalize', 'off', 'on', 'once', 'plugins', 'push',
  'queryString', 'ready', 'register', 'reset', 'setAnonymousId', 'storage', 'timeout', 'use', 'VERSION',
]; // prettier-ignore

/**
 * An element each for the calls that listen. A page of jsdom's cannot leave, nor submit: its console logs that, unseen.
 */
const LISTENED = `<a id="trackLink" href="#bought"></a><a id="trackClick" href="#looked"></a>
  <form id="trackForm"></form><form id="trackSubmit"></form>`;

let fleet: Fleet;
let scripts: Server;
let page: JSDOM;
let analytics: Record<Method, Call>;
/** `METHOD /path status` of every request of the page. */
const exchanges: string[] = [];

beforeAll(async () => {
  fleet = await startFleet();
  scripts = await serveClient();
  const { port } = scripts.address() as AddressInfo;
  const src = `http://127.0.0.1:${port}/v1/analytics-js/snippet/any/analytics.min.js`;
  page = new JSDOM(`<title>Shop</title><body>${LISTENED}<script src="${src}"></script>`, {
    url: 'http://shop.example/pricing',
    runScripts: 'dangerously',
    resources: 'usable',
    pretendToBeVisual: true,
    virtualConsole: new VirtualConsole(),
  });
  noteExchanges();
  await new Promise((resolve) => page.window.addEventListener('load', resolve));
  const { AnalyticsNext } = page.window as unknown as {
    AnalyticsNext: { AnalyticsBrowser: AnalyticsBrowser };
  };
  [analytics] = await AnalyticsNext.AnalyticsBrowser.load({
    writeKey: DEMO.writeKey,
    cdnURL: fleet.intake.url,
  });
});
afterAll(async () => {
  page.window.close();
  scripts.close();
  await fleet.close();
});

/**
 * The published script, at a path that it knows itself by, and the parts of it that it then loads from the same
 * host when they are needed.
 */
async function serveClient(): Promise<Server> {
  const script = createRequire(import.meta.url).resolve(
    '@customerio/cdp-analytics-browser/dist/umd/index.js',
  );
  const server = createServer((request, response) => {
    const name = basename(request.url ?? '');
    readFile(name === 'analytics.min.js' ? script : join(dirname(script), name)).then(
      (part) => response.setHeader('Content-Type', 'text/javascript').end(part),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function noteExchanges(): void {
  const { prototype } = page.window.XMLHttpRequest;
  const { value: open } = Object.getOwnPropertyDescriptor(prototype, 'open') as {
    value: (this: XMLHttpRequest, ...given: unknown[]) => void;
  };
  prototype.open = function noted(this: XMLHttpRequest, method: string, url: string, ...rest) {
    this.addEventListener('loadend', () =>
      exchanges.push(`${method.toUpperCase()} ${new URL(url).pathname} ${this.status}`),
    );
    open.call(this, method, url, ...rest);
  } as typeof prototype.open;
}

async function expectEvent(name: string, type: string): Promise<void> {
  expect(await fleet.event('b-1', name)).toMatchObject({ type });
}

interface Row {
  readonly method: Method;
  readonly send: () => unknown;
  readonly sent: string;
  readonly effect: () => Promise<unknown>;
}

const ROWS: readonly Row[] = [
  {
    method: 'identify',
    send: () => analytics.identify('b-1', { plan: 'browser' }),
    sent: 'POST /v1/i 200',
    effect: async () => expect((await fleet.customer('b-1')).attributes['plan']).toBe('browser'),
  },
  {
    method: 'track',
    send: () => analytics.track('signed up', { colour: 'red' }),
    sent: 'POST /v1/t 200',
    effect: async () =>
      expect(await fleet.event('b-1', 'signed up')).toMatchObject({ data: { colour: 'red' } }),
  },
  {
    method: 'page',
    send: () => analytics.page('Pricing'),
    sent: 'POST /v1/p 200',
    effect: () => expectEvent('Pricing', 'page'),
  },
  {
    method: 'pageview',
    send: () => analytics.pageview('/old-style'),
    sent: 'POST /v1/p 200',
    effect: async () => {
      const views = (await fleet.events('b-1')).map(({ data }) => data['path']);
      expect(views).toContain('/old-style');
    },
  },
  {
    method: 'screen',
    send: () => analytics.screen('Cart'),
    sent: 'POST /v1/s 200',
    effect: () => expectEvent('Cart', 'screen'),
  },
  {
    method: 'group',
    send: () => analytics.group('browser-company'),
    sent: 'POST /v1/g 200',
    effect: async () => expect(await fleet.relationships('b-1')).toContain('browser-company'),
  },
  {
    method: 'alias',
    send: () => analytics.alias('b-1', 'b-former'),
    sent: 'POST /v1/a 200',
    effect: async () => {
      expect((await fleet.customer('b-1')).attributes['colour']).toBe('blue');
      await expect(fleet.customer('b-former')).rejects.toMatchObject({ statusCode: 404 });
    },
  },
];

/** The client listens on the element, and actions on it are tracked. */
const listened = (method: Method, act: 'click' | 'submit'): Row => ({
  method,
  async send() {
    const element = page.window.document.getElementById(method) as HTMLElement;
    await analytics[method](element, `by ${method}`, { colour: 'green' });
    element.dispatchEvent(new page.window.Event(act, { bubbles: true, cancelable: true }));
  },
  sent: 'POST /v1/t 200',
  effect: async () =>
    expect(await fleet.event('b-1', `by ${method}`)).toMatchObject({ data: { colour: 'green' } }),
});

const LISTENING_ROWS = [
  listened('trackLink', 'click'),
  listened('trackClick', 'click'),
  listened('trackForm', 'submit'),
  listened('trackSubmit', 'submit'),
];

test('loads its settings from Sluice, and the events of a visitor become events of the person', async () => {
  expect(exchanges).toEqual([`GET /v1/projects/${DEMO.writeKey}/settings 200`]);
  await analytics.track('looked around');
  await analytics.identify('b-1', {});
  await fleet.event('b-1', 'looked around');
});

// In order: a row may use the data of the rows before it.
describe('AnalyticsBrowser', () => {
  beforeAll(async () => {
    await fetch(`${fleet.intake.url}/v1/i`, {
      method: 'POST',
      body: JSON.stringify({
        writeKey: DEMO.writeKey,
        userId: 'b-former',
        traits: { colour: 'blue' },
      }),
    });
    await vi.waitFor(() => fleet.customer('b-former'), WAIT);
  });

  test.each([...ROWS, ...LISTENING_ROWS])('$method → $sent', async ({ send, sent, effect }) => {
    const before = exchanges.length;
    await send();
    await vi.waitFor(() => expect(exchanges.slice(before)).toEqual([sent]), WAIT);
    await vi.waitFor(effect, WAIT);
  });

  test('every call of the client is in the table', () => {
    const methods = new Set<string>();
    for (
      let prototype: object | null = Object.getPrototypeOf(analytics);
      prototype !== null && Object.getPrototypeOf(prototype) !== null;
      prototype = Object.getPrototypeOf(prototype)
    )
      for (const name of Object.getOwnPropertyNames(prototype)) methods.add(name);
    const rows = [...ROWS, ...LISTENING_ROWS];
    const listed = [...rows.map(({ method }) => method), ...LOCAL_METHODS];
    expect(listed.toSorted()).toEqual([...methods].toSorted());
  });
});
