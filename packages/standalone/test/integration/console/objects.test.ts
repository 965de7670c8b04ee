/** Companies and their people, in the console. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('an object is found by an attribute, shows its people, and leads to them', async () => {
  for (const [groupId, plan] of [
    ['acme', 'pro'],
    ['globex', 'free'],
    ['a/b <i>', 'free'],
  ])
    expect(await world.send('/v1/group', { userId: 'ada', groupId, traits: { plan } })).toBe(200);
  await world.send('/v1/track', { userId: 'ada', event: 'Joined' });
  await world.fleet.event('ada', 'Joined');
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Objects' }).click();
  await page.getByRole('link', { name: 'globex' }).waitFor();
  await page.getByLabel('Attribute').fill('plan');
  await page.getByLabel('is', { exact: true }).fill('pro');
  await page.getByRole('link', { name: 'globex' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'acme' }).waitFor();
  // The list may be found before the second field is in the address.
  await page.waitForURL(/value=pro/);
  const address = page.url();
  await page.reload();
  await page.getByRole('link', { name: 'acme' }).click();
  await page.getByRole('region', { name: 'Attributes' }).getByText('pro').waitFor();
  await page.getByRole('link', { name: 'ada' }).click();
  await page.getByRole('heading', { name: 'ada' }).waitFor();
  await page.goBack();
  await page.goBack();
  await page.waitForURL(address);
  // Text of others is text, in the path too.
  await page.goto(`${world.url}/objects`);
  await page.getByRole('link', { name: 'a/b <i>' }).click();
  await page.getByRole('heading', { name: 'a/b <i>' }).waitFor();
  expect(await page.locator('main i').count()).toBe(0);
  await page.context().close();
});

test('a person with more objects than a page lists all of them, and each leads to its object', async () => {
  for (let count = 1; count <= 101; count++)
    await world.send('/v1/group', { userId: 'hub', groupId: `branch ${count}`, traits: {} });
  await world.send('/v1/track', { userId: 'hub', event: 'Related' });
  await world.fleet.event('hub', 'Related');
  const page = await world.demoPage();
  await page.goto(`${world.url}/people/hub?tab=relationships`);
  const objects = page.getByRole('definition').getByRole('link', { name: /^branch / });
  await objects.first().waitFor();
  expect(await objects.count()).toBe(100);
  const listed = await objects.allInnerTexts();
  await page.getByRole('button', { name: 'Next' }).click();
  await expect.poll(() => objects.count(), WAIT).toBe(1);
  const last = await objects.innerText();
  expect(listed).not.toContain(last);
  await objects.click();
  await page.getByRole('heading', { name: last, exact: true }).waitFor();
  await page.getByRole('link', { name: 'hub', exact: true }).waitFor();
  await page.context().close();
});
