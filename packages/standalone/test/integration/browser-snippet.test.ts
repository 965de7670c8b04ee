/**
 * Our own snippet and client, in a page of another origin.
 *
 * The browser's rules about origins are on.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { JSDOM, VirtualConsole } from 'jsdom';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

async function openPage(script: string): Promise<JSDOM> {
  const snippet = await (await fetch(`${fleet.intake.url}/v1/analytics-js/snippet/`)).text();
  return new JSDOM(`<head><title>Shop</title><script>${snippet}\n${script}</script></head>`, {
    url: 'http://shop.example/pricing?plan=pro',
    runScripts: 'dangerously',
    resources: 'usable',
    pretendToBeVisual: true,
    virtualConsole: new VirtualConsole(),
  });
}

interface Analytics {
  readonly initialized?: boolean;
  track(event: string, properties?: object): void;
  reset(): void;
}
const analyticsOf = (page: JSDOM) => page.window as unknown as { analytics: Analytics };

test('calls made before the client has loaded are sent in order, and those after it', async () => {
  const page = await openPage(`
    analytics.load('${DEMO.writeKey}');
    analytics.page();
    analytics.track('looked around', { colour: 'red' });
    analytics.identify('s-1', { plan: 'snippet' });
    analytics.group('snippet-company', { size: 3 });
    analytics.track('signed up');
  `);
  expect(analyticsOf(page).analytics.initialized).toBeUndefined();
  await vi.waitFor(() => expect(analyticsOf(page).analytics.initialized).toBe(true), WAIT);
  analyticsOf(page).analytics.track('came back');

  // The anonymous ones became the person's, so they were before the identify or under its anonymous id.
  expect(await fleet.event('s-1', 'looked around')).toMatchObject({ data: { colour: 'red' } });
  expect(await fleet.event('s-1', 'http://shop.example/pricing?plan=pro')).toMatchObject({
    type: 'page',
    data: { path: '/pricing', title: 'Shop', search: '?plan=pro' },
  });
  await fleet.event('s-1', 'signed up');
  await fleet.event('s-1', 'came back');
  await vi.waitFor(async () => {
    expect((await fleet.customer('s-1')).attributes['plan']).toBe('snippet');
    expect(await fleet.relationships('s-1')).toContain('snippet-company');
  }, WAIT);
  page.window.close();
});

test('the events of a visitor become events of the person that the alias names', async () => {
  await fetch(`${fleet.intake.url}/v1/i`, {
    method: 'POST',
    body: JSON.stringify({ writeKey: DEMO.writeKey, userId: 's-known' }),
  });
  await vi.waitFor(() => fleet.customer('s-known'), WAIT);
  const page = await openPage(`
    analytics.load('${DEMO.writeKey}');
    analytics.track('nobody yet');
    analytics.alias('s-known');
  `);
  expect(await fleet.event('s-known', 'nobody yet')).toMatchObject({ type: 'event' });
  page.window.close();
});

test('the visitor stays the same from page to page until reset', async () => {
  const page = await openPage(`analytics.load('${DEMO.writeKey}'); analytics.identify('s-2');`);
  await vi.waitFor(() => expect(analyticsOf(page).analytics.initialized).toBe(true), WAIT);
  const stored = () => page.window.localStorage.getItem('ajs_anonymous_id');
  const before = stored();
  expect(before).toMatch(/^"[0-9a-f-]{36}"$/);
  expect(page.window.localStorage.getItem('ajs_user_id')).toBe('"s-2"');
  analyticsOf(page).analytics.reset();
  analyticsOf(page).analytics.track('somebody else');
  expect(stored()).not.toBe(before);
  expect(page.window.localStorage.getItem('ajs_user_id')).toBeNull();
  page.window.close();
});

test('calls that are left when the page goes away are sent by sendBeacon, as text that needs no preflight', async () => {
  const page = await openPage(`analytics.load('${DEMO.writeKey}');`);
  await vi.waitFor(() => expect(analyticsOf(page).analytics.initialized).toBe(true), WAIT);
  const beacons: { url: string; type: string; text: Promise<string> }[] = [];
  const readBlob = (blob: Blob): Promise<string> =>
    new Promise((resolve) => {
      const reader = new page.window.FileReader();
      reader.addEventListener('load', () => {
        resolve(typeof reader.result === 'string' ? reader.result : '');
      });
      reader.readAsText(blob);
    });
  Object.defineProperty(page.window.navigator, 'sendBeacon', {
    value: (url: string, blob: Blob) => {
      beacons.push({ url, type: blob.type, text: readBlob(blob) });
      return true;
    },
  });
  analyticsOf(page).analytics.track('left');
  page.window.dispatchEvent(new page.window.Event('pagehide'));
  expect(beacons).toHaveLength(1);
  const [beacon] = beacons;
  expect(beacon).toMatchObject({ url: `${fleet.intake.url}/v1/t`, type: 'text/plain' });
  const body = await (beacon?.text ?? Promise.reject(new Error('no beacon')));
  const answer = await fetch(beacon?.url ?? '', {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'text/plain' },
  });
  expect(answer.status).toBe(200);
  expect(JSON.parse(body)).toMatchObject({ event: 'left', writeKey: DEMO.writeKey, userId: null });
  page.window.close();
});

test('the scripts are about the host they were asked from; an unknown key has no client', async () => {
  const get = (path: string) => fetch(`${fleet.intake.url}${path}`);
  const snippet = await get('/v1/analytics-js/snippet/');
  expect(snippet.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  expect(snippet.headers.get('access-control-allow-origin')).toBe('*');
  expect(await snippet.text()).toContain(`'${fleet.intake.url}/v1/analytics-js/snippet/'`);
  for (const path of [
    `/v1/analytics-js/snippet/${DEMO.writeKey}/analytics.min.js`,
    `/analytics.js/v1/${DEMO.writeKey}/analytics.min.js`,
  ]) {
    const client = await get(path);
    expect(client.status).toBe(200);
    expect(await client.text()).toContain(`var writeKey = "${DEMO.writeKey}"`);
  }
  expect((await get('/v1/analytics-js/snippet/nobody/analytics.min.js')).status).toBe(404);
});
