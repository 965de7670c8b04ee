/** A console with an object of each kind, and its screens' addresses. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

export interface ScreensUnderTest {
  readonly world: ConsoleUnderTest;
  readonly webhookId: number;
  /** Of each screen, with a query if it has one. */
  readonly paths: readonly string[];
}

interface Webhooks {
  readonly reporting_webhooks: readonly {
    readonly id: number;
    readonly stats: { readonly failed: number };
  }[];
}

export async function startScreens(): Promise<ScreensUnderTest> {
  const world = await startConsole();
  const webhookId = await world.makeWebhook('bars', 'http://127.0.0.1:9/hook');
  await world.send('/v1/identify', {
    userId: 'ada',
    traits: { email: 'ada@example.com', unsubscribed: false },
  });
  await world.send('/v1/track', { userId: 'ada', event: 'Order', messageId: 'bars-1' });
  await world.send('/v1/track', { event: 'x' }, false);
  // The fleet lists it.
  await fetch(`${world.fleet.intake.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('mistyped_write_key:')}` },
    body: '{"userId":"ada","event":"Order"}',
  });
  await world.send('/v1/group', { userId: 'ada', groupId: 'acme', traits: { plan: 'pro' } });
  await world.fleet.event('ada', 'Order');
  const schema = { type: 'object', required: ['total'] };
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'Paid.', schema });
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'It is paid.' });
  await world.call('POST', '/v1/applications', { id: 'acme', name: 'Acme' });
  await world.call('POST', '/v1/applications/acme/endpoints', {
    name: 'of acme',
    endpoint: 'http://127.0.0.1:9/hook',
    event_names: ['invoice.paid'],
  });
  await world.call('PUT', '/v1/feeds/warehouse', { events: ['event'] });
  const [{ keyId } = { keyId: 0 }] = (
    await sql<{ keyId: number }>`
      select min(credential_id)::int as "keyId" from api_credentials where account_id = ${DEMO.accountId}`.execute(
      world.fleet.database,
    )
  ).rows;
  const importId = await world.importFile('o.csv', '_svc_name,_svc_customer_id\nOrder,ada\n,\n');
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, status, message, content, origin, created_at, finished_at)
    values (${DEMO.accountId}, 'run_bars', 'invoiced', 'credits', 'invoiced', 'x', 'declined', 'Your card was declined.',
            '{}', '{}', now() - interval '3 seconds', now())`.execute(world.fleet.database);
  // The worker writes its statistics every ten seconds. A screen must show the same before and after a reload.
  await vi.waitFor(async () => {
    const path = '/v1/reporting_webhooks?include=stats';
    const { reporting_webhooks: webhooks } = await world.call<Webhooks>('GET', path);
    expect(webhooks.find(({ id }) => id === webhookId)?.stats.failed).toBeGreaterThan(0);
  }, WAIT);
  const paths = [
    '/',
    '/start',
    '/live',
    '/events/bars-1',
    '/events/none',
    '/issues',
    '/webhooks',
    `/webhooks/${webhookId}?delivery=1`,
    '/deliveries?state=pending',
    '/portal-links',
    '/event-types',
    '/event-types/invoice.paid?version=1',
    '/applications',
    '/applications?begins=none',
    '/applications/acme',
    '/feeds',
    '/feeds/warehouse',
    '/people?begins=a',
    '/people/ada?attribute=email',
    '/objects',
    '/objects/1/acme',
    '/imports',
    `/imports/${importId}`,
    '/keys?over=shown',
    `/keys/${keyId}`,
    '/users?user=1',
    '/audit',
    '/audit/1',
    '/billing',
    '/billing/credits?type=llm',
    '/billing/purchases/run_bars',
    '/billing/usage?by=week',
    '/settings',
    '/device',
    '/fleet',
    '/docs/all?find=webhook',
    '/docs/reporting-webhooks/createReportingWebhook?language=java',
  ];
  return { world, webhookId, paths };
}

/** Waits until the screen shows the data that it has read. */
export async function isShown(page: Page): Promise<void> {
  await page
    .locator('main h1, main h2')
    .first()
    .waitFor()
    .catch(async (error: unknown) => {
      throw new Error(`${page.url()}: ${await page.locator('body').innerText()}`, { cause: error });
    });
  await page.waitForFunction(() => document.querySelector('.waiting') === null);
}
