/**
 * The published browser client, unmodified, in a page. A file of its own: jsdom replaces the
 * process's `fetch` dispatcher, which other clients would notice.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { DEMO } from '@sluice/database/seed-demo';
import { JSDOM } from 'jsdom';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

type Call = (...arguments_: unknown[]) => Promise<unknown>;
interface AnalyticsBrowser {
  load(settings: {
    writeKey: string;
    cdnURL: string;
  }): Promise<[Record<'page' | 'track' | 'identify' | 'group', Call>]>;
}

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

test('loads its settings from us, and what a visitor did becomes the person’s', async () => {
  const page = new JSDOM('<title>Shop</title>', {
    url: 'http://shop.example/pricing',
    runScripts: 'outside-only',
    pretendToBeVisual: true,
  });
  const script = createRequire(import.meta.url).resolve(
    '@customerio/cdp-analytics-browser/dist/umd/index.js',
  );
  page.window.eval(readFileSync(script, 'utf8'));
  const { AnalyticsNext } = page.window as unknown as {
    AnalyticsNext: { AnalyticsBrowser: AnalyticsBrowser };
  };
  const [analytics] = await AnalyticsNext.AnalyticsBrowser.load({
    writeKey: DEMO.writeKey,
    cdnURL: fleet.intake.url,
  });
  await analytics.track('looked around', { colour: 'red' });
  await analytics.page('Pricing');
  await analytics.identify('b-1', { plan: 'browser' });
  await analytics.track('signed up');
  await analytics.group('browser-company');

  expect(await fleet.event('b-1', 'looked around')).toMatchObject({ data: { colour: 'red' } });
  await fleet.event('b-1', 'Pricing');
  await fleet.event('b-1', 'signed up');
  await vi.waitFor(async () => {
    expect((await fleet.customer('b-1')).attributes['plan']).toBe('browser');
    expect(await fleet.relationships('b-1')).toContain('browser-company');
  }, WAIT);
  page.window.close();
});
