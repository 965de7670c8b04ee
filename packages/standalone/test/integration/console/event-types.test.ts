/**
 * Published messages in the console.
 *
 * It shows their types and content, and whether a payload would be taken.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { problemsOf } from './accessibility.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('without a type the page explains one, and its samples work when they are pasted', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Event types' }).click();
  await page.getByRole('heading', { name: 'No event type is described yet' }).waitFor();
  expect(await problemsOf(page)).toEqual([]);
  const message = page.getByRole('region', { name: 'A message of it' });
  await world.paste(message);
  const made = await world.paste(page.getByRole('region', { name: 'A type, by a call' }));
  expect(JSON.parse(made)).toMatchObject({ name: 'invoice.paid', version: 1 });
  await page.getByRole('link', { name: 'invoice.paid' }).waitFor();
  await page.context().close();
});

test('a type is made by the keyboard alone, and the form names the fault of a schema', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/event-types`);
  const make = page.getByRole('button', { name: 'Make an event type', exact: true });
  await make.waitFor();
  const focus = async (target = make): Promise<void> => {
    for (let count = 0; count < 60; count++) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${target.toString()}`);
  };
  await focus();
  await page.keyboard.press('Enter');
  const form = page.getByRole('dialog');
  await form.waitFor();
  await page.keyboard.type('order/placed');
  await page.keyboard.press('Tab');
  await page.keyboard.type('An order is placed.');
  await page.keyboard.press('Tab');
  await page.keyboard.type('{typ: 1}');
  const save = form.getByRole('button', { name: 'Make the event type' });
  await focus(save);
  await page.keyboard.press('Enter');
  await form.getByRole('alert').getByText('schema: is not JSON').waitFor();
  const schema = form.getByLabel(/^JSON Schema/);
  const retype = async (text: string): Promise<void> => {
    await focus(schema);
    await page.keyboard.press('Control+a');
    await page.keyboard.type(text);
    await focus(save);
    await page.keyboard.press('Enter');
  };
  await retype('{"typ": 1}');
  await form.getByRole('alert').getByText('schema.typ').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await retype('{"type": "object", "required": ["total"]}');
  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'order/placed' }).waitFor();
  expect(await world.call('GET', '/v1/event_types/order%2Fplaced')).toMatchObject({
    description: 'An order is placed.',
    schema: { type: 'object', required: ['total'] },
  });
  await page.context().close();
});

test('a payload is tried, the schema changed, an earlier version seen, and the type archived, brought back and deleted by its name', async () => {
  const schema = { type: 'object', properties: { total: { minimum: 0 } } };
  await world.call('PUT', '/v1/event_types/refund', { description: 'Paid back.', schema });
  const page = await world.demoPage();
  await page.goto(`${world.url}/event-types`);
  await page.getByRole('link', { name: 'refund' }).click();
  await page.getByText('Paid back.').waitFor();
  const payload = page.getByLabel(/^Payload, which is not published/);
  const check = page.getByRole('button', { name: 'Check it' });
  await payload.fill('{"total": -1}');
  await check.click();
  await page.getByText('/total must be at least 0').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await payload.fill('[1]');
  await check.click();
  await page.getByRole('alert').getByText('payload').waitFor();
  await payload.fill('{"total": 1}');
  await check.click();
  await page.getByText('It fits version 1.').waitFor();

  await page.getByRole('button', { name: 'Change …' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel(/^JSON Schema/).fill('{"required": ["currency"]}');
  // Before it is stored: the payload that fits the one in force does not fit this one.
  await form.getByLabel(/^Payload, which is not published/).fill('{"total": 1}');
  await form.getByRole('button', { name: 'Check it' }).click();
  await form.getByText('/currency is required').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  expect(await world.call('GET', '/v1/event_types/refund')).toMatchObject({ version: 1 });
  await form.getByRole('button', { name: 'Change it' }).click();
  await form.waitFor({ state: 'detached' });
  const shown = page.getByRole('region', { name: 'JSON Schema of the payload' });
  await shown.getByText('currency').first().waitFor();
  await page.getByLabel('Version').selectOption('1');
  await shown.getByText('minimum').first().waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('version'), WAIT).toBe('1');
  await page.reload();
  await shown.getByText('minimum').first().waitFor();

  // Archived, it is not published, and is in the list still; brought back, it has its versions.
  await page.getByRole('button', { name: 'Archive' }).click();
  await page.getByText('It is archived: publishing refuses it').waitFor();
  expect(await problemsOf(page)).toEqual([]);
  await page.getByRole('link', { name: 'Event types' }).first().click();
  await page.getByRole('row', { name: 'refund' }).getByText('archived').waitFor();
  await page.getByRole('link', { name: 'refund' }).click();
  await page.getByRole('button', { name: 'Bring it back' }).click();
  await page.getByRole('button', { name: 'Archive' }).waitFor();
  expect(await world.call('GET', '/v1/event_types/refund')).toMatchObject({
    version: 2,
    archived: false,
  });
  await page.getByRole('button', { name: 'Archive' }).click();
  // Otherwise the deletion may come before it.
  await page.getByText('It is archived: publishing refuses it').waitFor();

  await page.getByRole('button', { name: 'Delete …' }).click();
  const remove = form.getByRole('button', { name: 'Delete the event type' });
  expect(await remove.isDisabled()).toBe(true);
  await form.getByRole('textbox').fill('refund');
  await remove.click();
  await page.getByRole('heading', { name: 'Event types' }).waitFor();
  await page.getByRole('link', { name: 'refund' }).waitFor({ state: 'detached' });
  await page.context().close();
});

test('a member sees the types and tries payloads, and has no right to change a type', async () => {
  await world.call('PUT', '/v1/event_types/seen', { description: 'Seen.' });
  const { page } = await world.userPage('member');
  await page.goto(`${world.url}/event-types`);
  const make = page.getByRole('button', { name: 'Make an event type', exact: true });
  await make.waitFor();
  expect(await make.isDisabled()).toBe(true);
  await page.getByRole('link', { name: 'seen' }).click();
  await page.getByRole('button', { name: 'Check it' }).click();
  await page.getByText('It fits version 1.').waitFor();
  expect(await page.getByRole('button', { name: 'Change …' }).isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Archive' }).isDisabled()).toBe(true);
  await page.context().close();
});

test('the name, description and schema of a type are shown as text, without markup', async () => {
  const evil = '<img src=x onerror=alert(1)>\u202e';
  await world.call('PUT', `/v1/event_types/${encodeURIComponent('<b>x')}`, {
    description: evil,
    schema: { title: evil },
  });
  const page = await world.demoPage();
  await page.goto(`${world.url}/event-types`);
  await page.getByRole('link', { name: '<b>x' }).click();
  await page.getByText('<img src=x').first().waitFor();
  expect(await page.locator('main img, main b').count()).toBe(0);
  await vi.waitFor(async () => expect(await page.content()).not.toContain('\u202e'), WAIT);
  await page.context().close();
});
