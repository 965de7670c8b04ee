/**
 * The portal in a browser. An engineer of a customer sees why the own endpoint gets no deliveries, and sends again. The
 * rest of the workspace is hidden. The portal opens in a frame of the product if the workspace allows it.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import {
  CLIENT_AUTHORITY,
  CLIENT_ONE_CERTIFICATE,
  CLIENT_ONE_KEY,
} from '@sluice/platform/testing/client-certificates';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { LOCAL_CERTIFICATE } from '../local-certificate.ts';
import { problemsOf, violationsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';
import { startGuardedReceiver } from './guarded-receiver.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

async function callWith(key: string, method: string, path: string, body: object) {
  const answer = await fetch(`${world.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return JSON.parse(text) as Record<string, unknown>;
}

const linkTo = async (webhookIds: readonly number[], more: object = {}): Promise<string> => {
  const { url } = await callWith(DEMO.appKey, 'POST', '/v1/portal_links', {
    for: 'acme/jo',
    webhook_ids: webhookIds,
    ...more,
  });
  return String(url);
};

/** A webhook whose first delivery fails, with another behind it. */
async function blockedWebhook(name: string) {
  const receiver = await startReceiver();
  const id = await world.makeWebhook(name, receiver.url);
  for (const user of [`${name}-1`, `${name}-2`])
    await world.send('/v1/identify', {
      userId: user,
      traits: { email: `${user}@example.com`, unsubscribed: false },
    });
  await vi.waitFor(() => expect(receiver.bodies.length).toBeGreaterThan(0), WAIT);
  return { id, receiver };
}

test('a link shows its webhooks alone, why one waits, and sends again by the keyboard', async () => {
  const { id, receiver } = await blockedWebhook('customer');
  await world.makeWebhook('of another customer', 'http://127.0.0.1:9/hook');
  const url = await linkTo([id], { capabilities: ['resend'], theme: { name: 'Acme' } });
  const page = await world.newPage();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  await page.getByRole('link', { name: 'customer', exact: true }).waitFor();
  expect(await page.getByText('of another customer').count()).toBe(0);
  expect(page.url()).not.toContain('#');
  const code = new URL(url).hash.slice(3);
  // The first is the page itself, whose fragment no browser sends.
  expect(asked.slice(1).filter((each) => each.includes(code))).toEqual([]);
  expect(await page.evaluate(() => localStorage.length + sessionStorage.length)).toBe(0);
  expect(await page.evaluate(() => document.cookie)).toBe('');

  const focus = async (name: string): Promise<void> => {
    for (let count = 0; count < 60; count++) {
      if (await page.evaluate((text) => document.activeElement?.textContent === text, name)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${name}`);
  };
  await focus('customer');
  await page.keyboard.press('Enter');
  await page.getByText(/^Delivery 1 gets 500 since /).waitFor();
  receiver.answer.status = 200;
  await page.getByRole('button', { name: 'Try now' }).waitFor();
  await focus('Try now');
  await page.keyboard.press('Enter');
  await page.getByText('Everything is delivered.').waitFor();
  const change = page.getByRole('button', { name: 'Change …' });
  expect(await change.isDisabled()).toBe(true);
  // The same after a reload; the code is used.
  await page.reload();
  await page.getByText('Everything is delivered.').waitFor();
  const again = await world.newPage();
  await again.goto(url);
  await again.getByText('the link was opened before').waitFor();
  const { rows } = await sql<{ name: string }>`
    select portal_label as name from audit_logs
     where actor_type = 'portal' and object_type = 'delivery'`.execute(world.fleet.database);
  expect(rows).toEqual([{ name: 'acme/jo' }]);
  receiver.close();
  await again.context().close();
  await page.context().close();
});

test('a link to webhooks shows the schemas of the messages that they name, and no other type', async () => {
  const schema = { type: 'object', required: ['parcel_id'] };
  await world.call('PUT', '/v1/event_types/parcel.sent', { description: 'It left.', schema });
  await world.call('PUT', '/v1/event_types/of.another', { description: 'Of another.', schema });
  const { id } = await world.call<{ id: number }>('POST', '/v1/reporting_webhooks', {
    name: 'parcels',
    endpoint: 'http://127.0.0.1:9/hook',
    events: ['message'],
    event_names: ['parcel.sent'],
  });
  const page = await world.newPage();
  await page.goto(await linkTo([id]));
  await page.getByRole('link', { name: 'Event types' }).focus();
  await page.keyboard.press('Enter');
  const type = page.getByRole('link', { name: 'parcel.sent' });
  await type.waitFor();
  expect(await page.getByText('of.another').count()).toBe(0);
  expect(await problemsOf(page)).toEqual([]);
  await type.focus();
  await page.keyboard.press('Enter');
  const shown = page.getByRole('region', { name: 'JSON Schema of the payload' });
  await shown.getByText('parcel_id').first().waitFor();
  await page.goto(page.url().replace('parcel.sent', 'of.another'));
  await page.getByText('the event type was not found').waitFor();
  await page.context().close();
});

test('an engineer makes a webhook, gives it a new secret, and sees it once', async () => {
  const filter = { field: 'data.customer_id', operator: 'eq', values: ['maker'] };
  const url = await linkTo([], {
    capabilities: ['create', 'edit', 'rotate'],
    event_types: ['customer_subscribed', 'email_bounced'],
    attribute_filters: [filter],
  });
  const page = await world.newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'Make a webhook', exact: true }).click();
  await page.getByLabel('Name').fill('made in the portal');
  await page.getByLabel('Endpoint (URL)').fill('https://receiver.example/hook');
  expect(await page.getByRole('checkbox').count()).toBe(2);
  await page.getByRole('checkbox', { name: 'email_bounced' }).check();
  await page.getByRole('button', { name: 'Make the webhook' }).click();
  await page.getByRole('link', { name: 'made in the portal' }).click();
  await page.getByRole('button', { name: 'New secret …' }).click();
  await page.getByRole('button', { name: 'Make the secret' }).click();
  const shown = page.getByRole('region', { name: 'The new secret' });
  const secret = await shown.innerText();
  expect(secret.length).toBeGreaterThan(20);
  await page.keyboard.press('Escape');
  await shown.waitFor();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByText(`Signs beside it, ends in ${secret.slice(-4)}`).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.getByRole('button', { name: 'Change …' }).click();
  await page.getByLabel('Name').fill('renamed');
  await page.getByRole('button', { name: 'Save the changes' }).click();
  await page.getByRole('heading', { name: 'renamed' }).waitFor();
  const { rows } = await sql<{ filters: unknown; events: unknown }>`
    select attribute_filters as filters, events from webhooks where name = 'renamed'`.execute(
    world.fleet.database,
  );
  expect(rows).toEqual([{ filters: [filter], events: ['email_bounced'] }]);
  await page.context().close();
});

test('an engineer sets the rate, the signature and the credentials of the own endpoint, and sees no secret', async () => {
  const receiver = await startGuardedReceiver(CLIENT_AUTHORITY);
  const id = await world.makeWebhook('guarded', `${receiver.url}/hook`);
  const page = await world.newPage();
  await page.goto(await linkTo([id], { capabilities: ['edit'] }));
  await page.getByRole('link', { name: 'guarded', exact: true }).click();
  await page.getByRole('button', { name: 'Change …' }).click();
  const form = page.getByRole('dialog');
  await form.getByText('How it is sent').click();
  await form.getByLabel('Signature').selectOption('standard_webhooks');
  await form.getByLabel(/^Requests a second/).fill('20');
  await form.getByText('Proof of the sender').click();
  await form.getByLabel(/^Client certificate/).fill(CLIENT_ONE_CERTIFICATE);
  await form.getByLabel(/^Private key/).fill(CLIENT_ONE_KEY);
  await form.getByLabel(/^Authorities/).fill(LOCAL_CERTIFICATE);
  await form.getByLabel('OAuth2: address that issues tokens').fill(`${receiver.url}/token`);
  await form.getByLabel('OAuth2: client id').fill('acme');
  await form.getByLabel('OAuth2: client secret').fill('secret-of-acme');
  expect(await problemsOf(page)).toEqual([]);
  await form.getByRole('button', { name: 'Save the changes' }).click();
  await page.getByText('signature: Standard Webhooks alone; at most 20 a second').waitFor();
  await page.getByText(/^client certificate CN=client one.*OAuth2 client acme$/).waitFor();
  await world.send('/v1/identify', {
    userId: 'guarded-1',
    traits: { email: 'guarded-1@example.com', unsubscribed: false },
  });
  await vi.waitFor(() => expect(receiver.deliveries).toHaveLength(1), WAIT);
  expect(receiver.deliveries).toEqual([{ client: 'client one', token: 'Bearer token-of-acme' }]);
  await page.getByRole('button', { name: 'Change …' }).click();
  await form.getByText(/^Stored: CN=client one/).waitFor();
  expect(await page.content()).not.toContain('secret-of-acme');
  await form.getByLabel('Remove the client certificate').check();
  await form.getByRole('button', { name: 'Save the changes' }).click();
  await page.getByText(/^authority CN=Sluice test; OAuth2 client acme$/).waitFor();
  receiver.close();
  await page.context().close();
});

test('the page is accessible and small, wide and narrow, with the colours of the link', async () => {
  const id = await world.makeWebhook('coloured', 'http://127.0.0.1:9/hook');
  const found: object[] = [];
  for (const scheme of ['light', 'dark'] as const) {
    for (const width of [1280, 360]) {
      const page = await world.newPage({ viewport: { width, height: 800 } });
      let scriptBytes = 0;
      page.on('response', (answer) => {
        if (answer.url().endsWith('.js'))
          scriptBytes += Number(answer.headers()['content-length'] ?? 0);
      });
      const theme = { name: 'Acme', accent: '#8060e0', color_scheme: scheme };
      const capabilities = ['edit', 'resend', 'rotate'];
      await page.goto(await linkTo([id], { capabilities, theme }));
      await page.getByRole('link', { name: 'coloured' }).waitFor();
      expect(scriptBytes).toBeGreaterThan(1_000);
      expect(scriptBytes).toBeLessThanOrEqual(90_000);
      for (const path of ['', `/webhooks/${id}`]) {
        if (path !== '') await page.getByRole('link', { name: 'coloured' }).click();
        await page.getByText('Everything is delivered.').waitFor();
        const violations = await violationsOf(page);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        if (violations.length > 0 || overflow > 0)
          found.push({ path, scheme, width, violations, overflow });
      }
      expect(
        await page.evaluate(() =>
          getComputedStyle(document.documentElement).getPropertyValue('--accent-fill'),
        ),
      ).toBe('#8060e0');
      await page.context().close();
    }
  }
  expect(found).toEqual([]);
}, 240_000);

test('the portal in a frame of the product is shown and sends its height; in other frames it is refused', async () => {
  const id = await world.makeWebhook('framed', 'http://127.0.0.1:9/hook');
  let portalUrl = '';
  const product = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(
      `<title>product</title><iframe width="900" src="${portalUrl}"></iframe>
       <script>addEventListener('message', (event) => {
         if (event.origin === '${world.url}') document.title = JSON.stringify(event.data) })</script>`,
    );
  });
  await new Promise<void>((resolve) => product.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(product.address() as AddressInfo).port}`;
  const allow = (origins: readonly string[]) =>
    callWith(
      DEMO.accountToken,
      'PUT',
      `/v1/accounts/${DEMO.accountId}/environments/${DEMO.environmentId}`,
      { environment: { portal_origins: origins } },
    );
  const page = await world.newForeignPage();
  const refused: string[] = [];
  page.on('console', (message) => refused.push(message.text()));

  portalUrl = await linkTo([id]);
  await page.goto(origin);
  await vi.waitFor(() => expect(refused.join()).toContain('frame-ancestors'), WAIT);

  await allow([origin]);
  portalUrl = await linkTo([id]);
  await page.goto(origin);
  await page.frameLocator('iframe').getByRole('link', { name: 'framed' }).waitFor();
  await page.waitForFunction(() => document.title.includes('sluice.height'));
  // It sends the height again when its rows are there.
  await vi.waitFor(async () => {
    const told = JSON.parse(await page.title()) as Record<string, unknown>;
    expect(Object.keys(told)).toEqual(['type', 'height']);
    expect(told['height']).toBeGreaterThan(100);
  }, WAIT);
  // The page around does not allow its frame to write to the clipboard.
  await page.frameLocator('iframe').getByRole('link', { name: 'framed' }).click();
  const copy = page.frameLocator('iframe').getByRole('button', { name: /^Copy/ }).first();
  await copy.click();
  await expect.poll(() => copy.textContent(), WAIT).toBe('Copied');
  await page.context().grantPermissions(['clipboard-read'], { origin });
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('http://127.0.0.1:9/hook');
  await allow([]);
  product.close();
  product.closeAllConnections();
  await page.close();
});

test('links are listed to the workspace, one is ended there, and the origins of frames are changed', async () => {
  const id = await world.makeWebhook('listed', 'http://127.0.0.1:9/hook');
  const visitor = await world.newPage();
  await visitor.goto(await linkTo([id], { for: 'acme/listed' }));
  await visitor.getByRole('link', { name: 'listed', exact: true }).waitFor();

  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('link', { name: 'Portal links' }).click();
  await page.getByRole('button', { name: 'Change the origins …' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel(/^Scheme, host and port/).fill('ftp://shop.example');
  await form.getByRole('button', { name: 'Save them' }).click();
  await form.getByRole('alert').waitFor();
  await form.getByLabel(/^Scheme, host and port/).fill('https://shop.example');
  await form.getByRole('button', { name: 'Save them' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByText('https://shop.example').waitFor();

  await page.getByRole('button', { name: 'End the link for acme/listed' }).click();
  await form.getByRole('button', { name: 'End the link', exact: true }).click();
  await page.getByRole('button', { name: 'End the link for acme/listed' }).waitFor({
    state: 'detached',
  });
  await visitor.getByText('The link is over').waitFor();
  const { rows } = await sql<{ origins: string[] }>`
    select portal_origins as origins from environments where environment_id = ${DEMO.environmentId}`.execute(
    world.fleet.database,
  );
  expect(rows).toEqual([{ origins: ['https://shop.example'] }]);
  await visitor.context().close();
  await page.context().close();
});
