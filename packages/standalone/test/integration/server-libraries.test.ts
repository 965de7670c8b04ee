/**
 * Libraries of servers that send in batches, unmodified.
 *
 * They run against the running services.
 */
import { Analytics as CustomerioAnalytics } from '@customerio/cdp-analytics-node';
import RudderAnalytics from '@rudderstack/rudder-sdk-node';
import { Analytics as SegmentAnalytics } from '@segment/analytics-node';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

describe('the server libraries that batch', () => {
  const settings = () => ({ writeKey: DEMO.writeKey, host: fleet.intake.url, path: '/v1/batch' });
  const libraries: [string, () => CustomerioAnalytics][] = [
    ['@customerio/cdp-analytics-node', () => new CustomerioAnalytics(settings())],
    // Both libraries have one ancestor and the same calls; only their event types differ.
    [
      '@segment/analytics-node',
      () => new SegmentAnalytics(settings()) as unknown as CustomerioAnalytics,
    ],
  ];

  test.each(libraries)('%s: flushed calls arrive once', async (name, open) => {
    const userId = `batch ${name}`;
    const analytics = open();
    const failures: unknown[] = [];
    analytics.on('error', (error: unknown) => failures.push(error));
    analytics.identify({ userId, traits: { plan: 'library' } });
    for (let n = 0; n < 40; n++)
      analytics.track({ userId, event: `event ${n}`, properties: { n } });
    analytics.group({ userId, groupId: 'library-group' });
    await analytics.closeAndFlush();
    expect(failures).toEqual([]);
    await vi.waitFor(async () => {
      const names = (await fleet.events(userId)).map((event) => event.name);
      expect(names.toSorted()).toEqual(
        Array.from({ length: 40 }, (_, n) => `event ${n}`).toSorted(),
      );
      expect((await fleet.customer(userId)).attributes['plan']).toBe('library');
      expect(await fleet.relationships(userId)).toContain('library-group');
    }, WAIT);
  });

  test.each(libraries)(
    '%s: its track calls are plain enough for the fast path',
    async (_, open) => {
      const before = await parsedCount();
      const analytics = open();
      for (let n = 0; n < 30; n++) {
        analytics.track({
          userId: `short ${n}`,
          event: 'Looked',
          properties: { n, note: 'ä "b"' },
        });
        analytics.track({
          anonymousId: `short-${n}`,
          event: 'Looked',
          context: { ip: '192.0.2.1' },
        });
      }
      await analytics.closeAndFlush();
      expect((await parsedCount()) - before).toBe(60);
    },
  );

  async function parsedCount(): Promise<number> {
    const page = await (await fetch(`${fleet.intake.url}/metrics`)).text();
    return Number(/^sluice_intake_skimmed_operations_total{[^}]*} (.+)$/m.exec(page)?.[1]);
  }
});

test('@rudderstack/rudder-sdk-node: each call is there once, the visitor’s too', async () => {
  const userId = 'rudder-node';
  const anonymousId = 'rudder-node-visitor';
  const analytics = new RudderAnalytics(DEMO.writeKey, { dataPlaneUrl: fleet.intake.url });
  analytics.track({ anonymousId, event: 'looked', properties: { k: 1 } });
  analytics.alias({ previousId: anonymousId, userId });
  // In this format traits are in the context.
  analytics.identify({ userId, context: { traits: { email: 'r@example.com', plan: 'pro' } } });
  analytics.page({ userId, category: 'docs', name: 'Home', properties: { url: 'https://x.io/' } });
  analytics.group({ userId, groupId: 'rudder-group', traits: { name: 'Acme' } });
  analytics.track({ userId, event: 'last' });
  await analytics.flush();
  await fleet.event(userId, 'last');
  expect(await fleet.event(userId, 'looked')).toMatchObject({ data: { k: 1 } });
  expect(await fleet.event(userId, 'Home')).toMatchObject({ data: { category: 'docs' } });
  expect((await fleet.customer(userId)).attributes).toMatchObject({
    email: 'r@example.com',
    plan: 'pro',
  });
  expect(await fleet.relationships(userId)).toContain('rudder-group');
});
