/**
 * The published browser clients, unmodified, in a real Chromium.
 *
 * Every other host is out of reach. Each call is here once, and no other host gets a request.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { openInChromium, type OpenPage } from './chromium-under-test.ts';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

/** The packages' builds for script tags. */
const require = createRequire(import.meta.url);
const SEGMENT = join(dirname(require.resolve('@segment/analytics-next')), '../umd');
const CUSTOMERIO = dirname(require.resolve('@customerio/cdp-analytics-browser/dist/umd/index.js'));
const RUDDER = join(dirname(require.resolve('@rudderstack/analytics-js/bundled')), '../umd');
const SCRIPTS = {
  '/parts/analytics-next/bundles/': SEGMENT,
  '/segment/': SEGMENT,
  '/customerio/': CUSTOMERIO,
  '/rudder/': RUDDER,
};

async function open(html: string): Promise<OpenPage> {
  const page = await openInChromium({ '/': `<!doctype html><title>Shop</title>${html}` }, SCRIPTS);
  onTestFinished(() => page.close());
  return page;
}

/** Seven calls of a visitor who becomes `user`, in the words that all of these clients have. */
const calls = (analytics: string, user: string): string => `
  ${analytics}.track('looked', { colour: 'red' });
  ${analytics}.identify('${user}', { email: '${user}@example.com', plan: 'pro' });
  ${analytics}.page('docs', 'Home');
  ${analytics}.track('bought', { price: 9.5 });
  ${analytics}.group('company-${user}', { name: 'Acme' });
  ${analytics}.track('last', {});`;

async function expectWhole(user: string): Promise<void> {
  await fleet.event(user, 'last');
  expect(await fleet.event(user, 'looked')).toMatchObject({ data: { colour: 'red' } });
  expect(await fleet.event(user, 'bought')).toMatchObject({ data: { price: 9.5 } });
  expect(await fleet.event(user, 'Home')).toMatchObject({
    type: 'page',
    data: { category: 'docs' },
  });
  await vi.waitFor(async () => {
    expect((await fleet.customer(user)).attributes).toMatchObject({
      email: `${user}@example.com`,
      plan: 'pro',
    });
    expect(await fleet.relationships(user)).toContain(`company-${user}`);
  }, WAIT);
  expect(await fleet.events(user)).toHaveLength(4);
}

/** A client in `AnalyticsNext`, as the builds of Segment and Customer.io for script tags are. */
const loadNext = (script: string, user: string, more = '') => `
  <script>${more}</script>
  <script src="${script}"></script>
  <script>
    AnalyticsNext.AnalyticsBrowser.load({ writeKey: '${DEMO.writeKey}', cdnURL: 'CDN' })
      .then(function (loaded) { var analytics = loaded[0]; ${calls('analytics', user)} })
      .catch(function (error) { console.error('FAILED', error); });
  </script>`;

test.each([
  ['@segment/analytics-next', '/segment/index.js', '/segment', ''],
  [
    // The parts of itself that it then loads are beside the page.
    '@segment/analytics-next beside other names',
    '/segment/index.js',
    '',
    `window.analytics = { _cdn: location.origin + '/parts' };`,
  ],
  ['@customerio/cdp-analytics-browser', '/customerio/index.js', '/customerio', ''],
])('%s', async (name, script, path, more) => {
  const user = `in-chromium-${name.replaceAll(/\W+/g, '-')}`;
  const html = loadNext(script, user, more).replace('CDN', `${fleet.intake.url}${path}`);
  const page = await open(html);
  await expectWhole(user);
  expect(page.askedElsewhere()).toEqual([]);
});

test('two builds for script tags on one page', async () => {
  const load = (name: string, path: string, event: string) => `
    <script src="${path}/index.js"></script>
    <script>
      window.AnalyticsNext.AnalyticsBrowser.load({
        writeKey: '${DEMO.writeKey}',
        cdnURL: '${fleet.intake.url}${path}',
      }).then(function (loaded) {
        loaded[0].identify('in-chromium-both', { ${name}: true });
        loaded[0].track('${event}', {});
      }).catch(function (error) { console.error('FAILED', error); });
    </script>`;
  const page = await open(
    load('segment', '/segment', 'by-segment') + load('customerio', '/customerio', 'by-customerio'),
  );
  await fleet.event('in-chromium-both', 'by-segment');
  await fleet.event('in-chromium-both', 'by-customerio');
  await vi.waitFor(async () => {
    expect((await fleet.customer('in-chromium-both')).attributes).toMatchObject({
      segment: 'true',
      customerio: 'true',
    });
  }, WAIT);
  expect(await fleet.events('in-chromium-both')).toHaveLength(2);
  expect(page.askedElsewhere()).toEqual([]);
});

test('@rudderstack/analytics-js', async () => {
  const user = 'in-chromium-rudder';
  const page = await open(`
    <script src="/rudder/index.js"></script>
    <script>
      var rudder = new rudderanalytics.RudderAnalytics();
      rudder.load('${DEMO.writeKey}', '${fleet.intake.url}', { configUrl: '${fleet.intake.url}' });
      rudder.ready(function () { ${calls('rudder', user)} });
    </script>`);
  await expectWhole(user);
  expect(page.askedElsewhere()).toEqual([]);
});
