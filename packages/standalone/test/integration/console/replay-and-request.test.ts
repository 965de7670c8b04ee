/**
 * The exact request of a delivery, and its replay.
 *
 * The console shows the number of deliveries before it replays them.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

let world: ConsoleUnderTest;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let id: number;
beforeAll(async () => {
  world = await startConsole();
  receiver = await startReceiver();
  receiver.answer.status = 200;
  id = await world.makeWebhook('sent', receiver.url);
  await fetch(`${world.url}/v1/reporting_webhooks/${id}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${DEMO.appKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      headers: { 'X-Own': 'a secret of the receiver' },
      standard_webhooks: true,
    }),
  });
  for (const user of ['ada', 'bob', 'eve'])
    await world.send('/v1/identify', {
      userId: user,
      traits: { email: `${user}@example.com`, unsubscribed: false },
    });
  await vi.waitFor(() => {
    if (receiver.bodies.length !== 3) throw new Error('three deliveries were not sent');
  }, WAIT);
});
afterAll(async () => {
  receiver.close();
  await world.close();
});

test('an attempt shows the request as the receiver got it, without the secrets', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}?delivery=1`);
  const body = page.getByRole('region', { name: /^Body that was sent/ });
  await body.waitFor();
  await page.getByRole('button', { name: 'Raw' }).first().click();
  const shown = (await body.textContent())!;
  const index = receiver.bodies.indexOf(shown);
  expect(index).toBeGreaterThanOrEqual(0);
  const head = (await page
    .getByRole('region', { name: 'Request line and headers that were sent' })
    .textContent())!;
  const got = receiver.heads[index]!;
  expect(head).toContain(`POST ${receiver.url}`);
  for (const name of [
    ...['content-type', 'user-agent', 'x-svc-timestamp', 'x-svc-signature'],
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  ]) {
    expect(got).toHaveProperty(name);
    expect(head).toContain(`${name}: ${String(got[name])}`);
  }
  expect(got['x-own']).toBe('a secret of the receiver');
  expect(head).toContain('x-own: (set by you; not shown)');
  expect(await page.content()).not.toContain('a secret of the receiver');
  const isCut = () => body.evaluate((element) => element.scrollWidth > element.clientWidth);
  expect(await isCut()).toBe(true);
  await page.getByRole('button', { name: /^Wrap the lines of Body that was sent/ }).click();
  await expect.poll(isCut, WAIT).toBe(false);
  await page.getByRole('button', { name: 'Python', exact: true }).click();
  const code = page.getByRole('region', { name: 'Code that verifies the signature' });
  await code.getByText('hmac.compare_digest').waitFor();
  await page.reload();
  await code.getByText('hmac.compare_digest').waitFor();
  await page.context().close();
});

test('a replay shows the number of its deliveries before it sends them, and then its progress', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Replay …' }).click();
  await page.getByLabel('About the person').fill('bob@example.com');
  await page.getByRole('button', { name: 'Count them' }).click();
  await page.getByText(/^1 delivery matches/).waitFor();
  expect(receiver.bodies).toHaveLength(3);
  // Another question: the deliveries counted before are not sent.
  await page.getByLabel('About the person').fill('');
  await page.getByText(/^1 delivery matches/).waitFor({ state: 'detached' });
  await page.getByLabel('Requests a second').fill('1000');
  await page.getByRole('button', { name: 'Count them' }).click();
  await page.getByText(/^3 deliveries match/).waitFor();
  await page.getByRole('button', { name: 'Send 3 again' }).click();
  await page.getByRole('cell', { name: '3 of 3' }).waitFor();
  await page.getByRole('cell', { name: 'done' }).waitFor();
  expect(receiver.bodies).toHaveLength(6);
  expect(new Set(receiver.bodies).size).toBe(3);
  await page.context().close();
});

test('selected deliveries are sent again, and a refused one stays selected over a reload', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  const before = receiver.bodies.length;
  for (const sequence of [3, 1, 2])
    await page.getByLabel(`Select delivery ${sequence}`, { exact: true }).check();
  await expect.poll(() => new URL(page.url()).searchParams.get('selected'), WAIT).toBe('1,2,3');
  await page.route(/\/deliveries\/2\/resend$/, (route) => route.abort('connectionaborted'), {
    times: 1,
  });
  await page.getByRole('button', { name: 'Send 3 selected again' }).click();
  await page.getByText('Delivery 2: The API does not answer.').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Send 2 selected again' }).click();
  await page.getByRole('group', { name: 'Selected deliveries' }).waitFor({ state: 'detached' });
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(before + 3), WAIT);
  expect(receiver.bodies.slice(before).toSorted()).toEqual(receiver.bodies.slice(0, 3).toSorted());
  await page.context().close();
});

test('selected deliveries that are being sent are not offered again in another list', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  const box = (sequence: number) => page.getByLabel(`Select delivery ${sequence}`, { exact: true });
  for (const sequence of [1, 2]) await box(sequence).check();
  const sent: string[] = [];
  const asked = Promise.withResolvers<void>();
  const isGoingOn = Promise.withResolvers<void>();
  await page.route(/\/resend$/, async (route) => {
    sent.push(new URL(route.request().url()).pathname.split('/').at(-2)!);
    asked.resolve();
    await isGoingOn.promise;
    return route.continue();
  });
  const button = page.getByRole('button', { name: 'Send 2 selected again' });
  await button.click();
  await asked.promise;
  await page.getByLabel('Last answer').selectOption('2xx');
  await page.waitForURL(({ searchParams }) => searchParams.get('answer') === '2xx');
  await box(1).waitFor();
  expect(await button.isDisabled()).toBe(true);
  for (const sequence of [1, 2, 3]) expect(await box(sequence).isDisabled()).toBe(true);
  isGoingOn.resolve();
  await page.getByRole('group', { name: 'Selected deliveries' }).waitFor({ state: 'detached' });
  expect(sent).toEqual(['1', '2']);
  await expect.poll(() => box(1).isEnabled(), WAIT).toBe(true);
  await page.context().close();
});

test('a resend goes on when its screen is left, and Back offers only the deliveries that are not sent', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks`);
  await page.goto(`${world.url}/webhooks/${id}`);
  const box = (sequence: number) => page.getByLabel(`Select delivery ${sequence}`, { exact: true });
  for (const sequence of [1, 2, 3]) await box(sequence).check();
  const sent: string[] = [];
  const isAsked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const isGoingOn = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route(/\/resend$/, async (route) => {
    const place = sent.push(new URL(route.request().url()).pathname.split('/').at(-2)!) - 1;
    isAsked[place]?.resolve();
    await isGoingOn[place]?.promise;
    return place === 1 ? route.abort('connectionaborted') : route.continue();
  });
  await page.getByRole('button', { name: 'Send 3 selected again' }).click();
  await isAsked[0]!.promise;
  await page.getByRole('link', { name: 'Issues' }).click();
  await page.getByRole('heading', { name: 'Issues' }).waitFor();
  // The first one is sent while another screen is shown; the second one is asked for.
  isGoingOn[0]!.resolve();
  await isAsked[1]!.promise;
  await page.goBack();
  const button = page.getByRole('button', { name: 'Send 2 selected again' });
  await button.waitFor();
  expect(await button.isDisabled()).toBe(true);
  await expect.poll(() => new URL(page.url()).searchParams.get('selected'), WAIT).toBe('2,3');
  isGoingOn[1]!.resolve();
  await page.getByText('Delivery 2: The API does not answer.').waitFor();
  await button.click();
  await page.getByRole('group', { name: 'Selected deliveries' }).waitFor({ state: 'detached' });
  expect(sent).toEqual(['1', '2', '2', '3']);
  await page.context().close();
});

test('a count that comes after a change of the form is not shown, so no other deliveries are sent', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Replay …' }).click();
  const counted = page.getByText(/^\d+ deliver(?:y matches|ies match)/);
  await counted.waitFor();
  const asked = Promise.withResolvers<void>();
  const isChanged = Promise.withResolvers<void>();
  await page.route(/\/replays$/, async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    asked.resolve();
    await isChanged.promise;
    return route.continue();
  });
  await page.getByRole('button', { name: 'Count them' }).click();
  await asked.promise;
  await page.getByLabel('About the person').fill('bob@example.com');
  isChanged.resolve();
  // The button is on again with the answer.
  await expect
    .poll(() => page.getByRole('button', { name: 'Count them' }).isEnabled(), WAIT)
    .toBe(true);
  expect(await counted.count()).toBe(0);
  await page.context().close();
});

// Security: stored XSS. The answer of an endpoint is a text of somebody else.
test('the headers and the body of an answer are shown as text, with visible control characters', async () => {
  const hostile = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  const endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/html', 'x-note': hostile });
    response.end(`${hostile}\u202e\u001b[31m`);
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const { port } = endpoint.address() as AddressInfo;
  const hostileId = await world.makeWebhook(hostile, `http://127.0.0.1:${port}/hook`);
  await world.call('POST', `/v1/reporting_webhooks/${hostileId}/test`, {
    event_type: 'email_sent',
  });
  const page = await world.demoPage();
  await page.goto(`${world.url}/webhooks/${hostileId}?delivery=1`);
  const part = (name: string) => page.getByRole('region', { name });
  await part('Body of the answer')
    .getByText(String.raw`\u202e\u001b[31m`)
    .waitFor();
  await part('Status line and headers of the answer').getByText(hostile).first().waitFor();
  await page.getByRole('heading', { name: hostile }).waitFor();
  expect(await page.locator('main img, main script').count()).toBe(0);
  expect(await page.title()).not.toBe('taken');
  await page.context().close();
  endpoint.closeAllConnections();
  endpoint.close();
});
