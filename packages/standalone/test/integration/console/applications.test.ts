/**
 * The page of an application in the console.
 *
 * It shows which messages a customer of ours receives, and how. The customer's engineers see only their part of it, in
 * the portal.
 */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole, startReceiver } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

async function makeEndpoint(application: string, endpoint: string): Promise<number> {
  const path = `/v1/applications/${application}`;
  await world.call('POST', '/v1/applications', { id: application, name: 'Customer' });
  const body = { name: `of ${application}`, endpoint };
  return (await world.call<{ id: number }>('POST', `${path}/endpoints`, body)).id;
}

test('without an application the page explains one; its samples, pasted one after another, send a message', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Applications' }).click();
  await page.getByRole('heading', { name: 'There is no application yet' }).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await world.paste(page.getByRole('region', { name: 'An application, by a call' }));
  await page.getByRole('link', { name: 'acme' }).click();
  await page.getByRole('heading', { name: 'It has no endpoint yet' }).waitFor();
  await world.paste(page.getByRole('region', { name: 'An endpoint, by a call' }));
  await world.paste(page.getByRole('region', { name: 'A message to it' }));
  await page.getByRole('link', { name: 'Orders' }).click();
  await page.getByRole('heading', { name: 'Orders' }).waitFor();
  const endpoint = new URL(page.url()).pathname.replace('/webhooks', '/v1/reporting_webhooks');
  await vi.waitFor(async () => {
    const { deliveries } = await world.call<{ deliveries: object[] }>(
      'GET',
      `${endpoint}/deliveries`,
    );
    expect(deliveries).toHaveLength(1);
  }, WAIT);
  await page.getByRole('link', { name: 'Application acme' }).click();
  await page.getByRole('heading', { name: 'Acme' }).waitFor();
  await page.context().close();
});

test('an application is made, found by its id, renamed, and deleted with its endpoints', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/applications`);
  await page.getByRole('button', { name: 'Make an application', exact: true }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('Globex');
  await form.getByLabel(/^Id:/).fill('globex/eu');
  expect(await problemsOf(page)).toEqual([]);
  await form.getByRole('button', { name: 'Make the application' }).click();
  await page.getByRole('heading', { name: 'Globex' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname, WAIT).toBe('/applications/globex%2Feu');

  await page.getByRole('link', { name: 'Applications' }).first().click();
  await page.getByLabel('Id begins with').fill('nobody');
  await page.getByRole('heading', { name: 'No application begins with that' }).waitFor();
  await page.getByLabel('Id begins with').fill('glob');
  await page.getByRole('link', { name: 'globex/eu' }).waitFor();
  expect(await page.getByRole('link', { name: 'acme' }).count()).toBe(0);
  await page.waitForURL((url) => url.searchParams.get('begins') === 'glob');
  await page.getByRole('link', { name: 'globex/eu' }).click();

  await page.getByRole('button', { name: 'Rename …' }).click();
  await form.getByLabel('Name', { exact: true }).fill('Globex Europe');
  await form.getByRole('button', { name: 'Rename it' }).click();
  await page.getByRole('heading', { name: 'Globex Europe' }).waitFor();
  await page.getByRole('button', { name: 'Delete …' }).click();
  await form.getByRole('textbox').fill('globex/eu');
  await form.getByRole('button', { name: 'Delete the application' }).click();
  await page.getByRole('heading', { name: 'Applications' }).waitFor();
  await page.getByRole('link', { name: 'globex/eu' }).waitFor({ state: 'detached' });
  await page.context().close();
});

test('an endpoint is made with options of its own, and shows its secret once', async () => {
  await world.call('POST', '/v1/applications', { id: 'initech', name: 'Initech' });
  const page = await world.demoPage();
  await page.goto(`${world.url}/applications/initech`);
  await page.getByRole('button', { name: 'Make an endpoint', exact: true }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('invoices');
  await form.getByLabel('Endpoint (URL)').fill('https://initech.example/hook');
  await form.getByLabel(/^Only messages of these types/).fill('invoice.paid\ninvoice.due');
  await form.getByText('How it is sent').click();
  await form.getByLabel('Signature').selectOption({ label: 'Standard Webhooks alone' });
  await form.getByLabel(/^Requests a second/).fill('5');
  await form.getByLabel(/^Requests at the same time/).fill('2');
  await form.getByLabel('Order', { exact: true }).selectOption('strict');
  await form.getByLabel(/^Disable it after/).fill('31');
  await form.getByRole('button', { name: 'Make the endpoint' }).click();
  await form.getByRole('alert').getByText('disable_after_days').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await form.getByLabel(/^Disable it after/).fill('7');
  await form.getByRole('button', { name: 'Make the endpoint' }).click();
  const secret = await page.getByRole('region', { name: 'The secret of the endpoint' }).innerText();
  expect(secret.length).toBeGreaterThan(20);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name: 'invoices' }).waitFor();
  expect(await page.content()).not.toContain(secret);
  const { endpoints } = await world.call<{ endpoints: object[] }>(
    'GET',
    '/v1/applications/initech/endpoints',
  );
  expect(endpoints).toMatchObject([
    {
      event_names: ['invoice.paid', 'invoice.due'],
      signing: 'standard_webhooks',
      rate_limit_per_second: 5,
      window_max: 2,
      ordering: 'strict',
      disable_after_days: 7,
    },
  ]);

  await page.getByRole('link', { name: 'invoices' }).click();
  await page.getByText(/Standard Webhooks alone; at most 5 a second; at most 2/).waitFor();
  await page.getByRole('button', { name: 'Change …' }).click();
  // Fields that differ from a new one are open at once.
  await form.getByLabel(/^Disable it after/).fill('');
  await form.getByLabel(/^Only messages of these types/).fill('');
  await form.getByRole('button', { name: 'Change it' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByText(/in strict order$/).waitFor();
  await page.getByRole('button', { name: 'Delete …' }).click();
  await form.getByRole('textbox').fill('invoices');
  await form.getByRole('button', { name: 'Delete the endpoint' }).click();
  await page.getByRole('heading', { name: 'Initech' }).waitFor();
  await page.getByRole('link', { name: 'invoices' }).waitFor({ state: 'detached' });
  await page.context().close();
});

test('messages to an application are counted, and a replay sends them to its endpoints again', async () => {
  const receiver = await startReceiver();
  receiver.answer.status = 200;
  const id = await makeEndpoint('replayed', receiver.url);
  for (const event_id of ['one', 'two'])
    await world.publish({ application: 'replayed', event_type: 'paid', payload: {}, event_id });
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(2), WAIT);
  const page = await world.demoPage();
  await page.goto(`${world.url}/applications/replayed`);
  await page.getByRole('button', { name: 'Replay all endpoints …' }).click();
  await page.getByText(/^2 deliveries match/).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  // Delivered after the count, so it is not sent again.
  await world.publish({
    ...{ application: 'replayed', event_type: 'paid', payload: {} },
    event_id: 'three',
  });
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(3), WAIT);
  await page.getByRole('button', { name: 'Send 2 again' }).click();
  await page.getByRole('link', { name: `Endpoint ${id}` }).waitFor();
  await page.getByText('sends 2 deliveries again').waitFor();
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(5), WAIT);
  await page.getByRole('link', { name: `Endpoint ${id}` }).click();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await vi.waitFor(() => expect(receiver.bodies).toHaveLength(6), WAIT);
  receiver.close();
  await page.context().close();
});

test('a link to the portal is made; it shows its endpoints and the event types with their schemas alone', async () => {
  const id = await makeEndpoint('portal-of', 'http://127.0.0.1:9/hook');
  const other = await makeEndpoint('another', 'http://127.0.0.1:9/hook');
  const schema = { type: 'object', required: ['invoice_id'] };
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'Paid.', schema });
  await world.call('PUT', '/v1/event_types/invoice.paid', { description: 'It is paid.' });
  const page = await world.demoPage();
  await page.goto(`${world.url}/applications/portal-of`);
  await page.getByRole('button', { name: 'Portal link …' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel(/^For whom/).fill('acme/jo');
  await form.getByLabel('Change their secrets').uncheck();
  expect(await problemsOf(page)).toEqual([]);
  await form.getByRole('button', { name: 'Make the link' }).click();
  const url = await page.getByRole('region', { name: 'The link to the portal' }).innerText();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  expect(await page.content()).not.toContain(url);

  const visitor = await world.newPage();
  await visitor.goto(url);
  await visitor.getByRole('link', { name: 'of portal-of' }).waitFor();
  await visitor.getByRole('link', { name: 'Event types' }).click();
  await visitor.getByRole('link', { name: 'invoice.paid' }).waitFor();
  expect(await problemsOf(visitor)).toEqual([]);
  await visitor.getByRole('link', { name: 'invoice.paid' }).click();
  await visitor.getByText('It is paid.').waitFor();
  await visitor.getByLabel('Version').selectOption('1');
  const shown = visitor.getByRole('region', { name: 'JSON Schema of the payload' });
  await shown.getByText('invoice_id').first().waitFor();
  expect(await problemsOf(visitor)).toEqual([]);
  expect(await visitor.getByRole('button', { name: /^(?:Change|Delete|Check)/ }).count()).toBe(0);
  await visitor.reload();
  await shown.getByText('invoice_id').first().waitFor();

  const base = new URL(url).pathname;
  const linkId = base.split('/').at(-1);
  const read = async (path: string): Promise<number> => {
    const headers = { 'x-sluice-portal': `1/${linkId}` };
    return (await visitor.request.get(`${world.url}${path}`, { headers })).status();
  };
  expect(await read('/v1/event_types')).toBe(200);
  for (const path of [
    '/v1/applications',
    '/v1/applications/portal-of',
    '/v1/applications/portal-of/endpoints',
    '/v1/feeds',
    '/v1/portal_links',
    `/v1/reporting_webhooks/${other}`,
  ])
    expect([path, await read(path)]).not.toEqual([path, 200]);
  for (const path of ['/applications', '/feeds', '/event-types/invoice.paid/check'])
    expect((await visitor.request.get(`${world.url}${base}${path}`)).status()).toBe(404);
  await visitor.goto(`${world.url}${base}/webhooks/${id}`);
  await visitor.getByRole('heading', { name: 'of portal-of' }).waitFor();
  const { rows } = await sql<{ label: string }>`
    select label from portal_links where application_id = 'portal-of'`.execute(
    world.fleet.database,
  );
  expect(rows).toEqual([{ label: 'acme/jo' }]);

  await page.goto(`${world.url}/portal-links`);
  await page.getByRole('link', { name: 'portal-of', exact: true }).click();
  await page.getByRole('heading', { name: 'Customer' }).waitFor();
  await visitor.context().close();
  await page.context().close();
});
