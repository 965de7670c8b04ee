/** Our own client in a real Chromium: a call that cannot be sent costs itself alone. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { openInChromium } from './chromium-under-test.ts';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
let snippet: string;
beforeAll(async () => {
  fleet = await startFleet();
  snippet = await (await fetch(`${fleet.intake.url}/v1/analytics-js/snippet/`)).text();
});
afterAll(() => fleet.close());

async function open(script: string) {
  const html = `<!doctype html><title>Shop</title><script>${snippet}</script><script>
    analytics.load('${DEMO.writeKey}');
    ${script}
  </script>`;
  const page = await openInChromium({ '/': html, '/gone': '<!doctype html><title>Gone</title>' });
  onTestFinished(() => page.close());
  return page;
}

/** Values that JSON cannot hold, or that throw when they are read. */
const UNSENDABLE = `
  var loop = {}; loop.self = loop;
  var throwing = { get price() { throw new Error('of the page'); } };
  var revoked = Proxy.revocable({}, {}); revoked.revoke();
  var deep = {}; for (var at = deep, n = 0; n < 1e5; n++) at = at.in = {};
  var keyless = new Proxy({}, { ownKeys: function () { throw new Error('of the page'); } });
  function sendWhatCannotBeSent() {
    analytics.track('bigint', { b: 10n });
    analytics.track('circular', loop);
    analytics.track('throwing', throwing);
    analytics.page('throwing page', throwing);
    analytics.group('throwing group', { toJSON: function () { throw new Error('of the page'); } });
    analytics.identify('web-nobody', { n: 1n });
    analytics.track('revoked', { deep: [revoked.proxy] });
    analytics.track('too deep', deep);
    analytics.screen('without keys', keyless);
    analytics.track('throws what throws', { toJSON: function () { throw revoked.proxy; } });
    analytics.track(10n, { when: new Date(8.64e15 + 1) });
    analytics.identify(Object.create(null));
    analytics.alias({ toString: function () { throw new Error('of the page'); } });
    analytics.push(undefined);
    analytics.push({ 0: 'track' });
    analytics.push([]);
    analytics.reset();
  }`;

test.each([
  ['before the client has loaded', 'run();'],
  ['after it has loaded', 'analytics.ready(run);'],
])('calls behind one that cannot be sent arrive: %s', async (when, start) => {
  const user = `web-${when.split(' ')[0]}`;
  const page = await open(`${UNSENDABLE}
    function run() {
      analytics.track('one', {});
      sendWhatCannotBeSent();
      analytics.identify('${user}', { email: '${user}@example.com' });
      analytics.track('three', {});
    }
    ${start}`);
  expect(await fleet.event(user, 'three')).toMatchObject({ type: 'event' });
  await vi.waitFor(async () => {
    expect((await fleet.customer(user)).attributes['email']).toBe(`${user}@example.com`);
  }, WAIT);
  await vi.waitFor(() => {
    for (const type of ['track', 'page', 'group', 'identify'])
      expect(page.console()).toContain(`analytics: a call of ${type} is dropped`);
  }, WAIT);
});

test('calls that are left when the page goes away arrive, also beside calls that cannot be sent', async () => {
  await open(`${UNSENDABLE}
    analytics.ready(function () {
      analytics.identify('web-leaving');
      // Nothing is answered any more, as where the network is slow: all waits for the end of the page.
      window.XMLHttpRequest = function () {
        return { open: function () {}, setRequestHeader: function () {}, send: function () {} };
      };
      analytics.track('first left', {});
      sendWhatCannotBeSent();
      analytics.identify('web-leaving');
      analytics.track('last left', {});
      location.href = '/gone';
    });`);
  expect(await fleet.event('web-leaving', 'first left')).toMatchObject({ type: 'event' });
  expect(await fleet.event('web-leaving', 'last left')).toMatchObject({ type: 'event' });
});

test('calls that a page makes before and while it goes away arrive, also beside calls that cannot be sent', async () => {
  await open(`${UNSENDABLE}
    analytics.ready(function () {
      analytics.identify('web-late');
      analytics.track('before', {});
      // Behind ours: it is told of the end after us.
      window.addEventListener('pagehide', function () {
        sendWhatCannotBeSent();
        analytics.identify('web-late');
        analytics.track('while leaving', { sizes: new Map([[1, 2]]), at: new Date(0) });
      });
      setTimeout(function () { location.href = '/gone'; }, 500);
    });`);
  expect(await fleet.event('web-late', 'before')).toMatchObject({ type: 'event' });
  expect(await fleet.event('web-late', 'while leaving')).toMatchObject({
    type: 'event',
    data: { sizes: {}, at: 0 },
  });
});

test('a queue does not stand still for a request that throws', async () => {
  await open(`
    analytics.ready(function () {
      var Real = window.XMLHttpRequest;
      var count = 0;
      window.XMLHttpRequest = function () {
        if (count++ === 0) throw new Error('of the page');
        return new Real();
      };
      analytics.identify('web-throwing');
      analytics.track('went on', {});
    });`);
  expect(await fleet.event('web-throwing', 'went on')).toMatchObject({ type: 'event' });
});
