/** The reference in the console: a call is found, its sample read in each language, and tried in the session. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('a call is found by a word, has a sample in seven languages, and the one that is chosen is in the address', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Reference' }).click();
  await page.getByLabel('Find').fill('make a reporting');
  await page.getByRole('link', { name: 'Make a reporting webhook' }).click();
  const sample = page.getByRole('region', { name: 'Sample' });
  await sample.getByText(`curl '${world.url}/v1/reporting_webhooks'`).waitFor();
  for (const [language, text] of [
    ['Node', 'await fetch('],
    ['Python', 'urllib.request'],
    ['Go', 'http.NewRequest("POST"'],
    ['Ruby', 'Net::HTTP::Post'],
    ['PHP', 'curl_init'],
    ['Java', 'HttpClient.newHttpClient()'],
  ] as const) {
    await page.getByRole('button', { name: language, exact: true }).click();
    await sample.getByText(text).waitFor();
    expect(await sample.innerText()).toContain('SLUICE_KEY');
  }
  await expect.poll(() => new URL(page.url()).searchParams.get('language'), WAIT).toBe('java');
  await page.getByRole('rowheader', { name: 'endpoint' }).first().waitFor();
  await page.context().close();
});

test('a read is sent at once, a write after it was asked for, and a refusal is shown as the answer that it is', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/docs/workspaces/getWorkspace`);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  const answer = page.getByRole('region', { name: 'The answer' });
  await answer.getByText('"workspaces"').first().waitFor();

  await page.goto(`${world.url}/docs/reporting-webhooks/createReportingWebhook`);
  const body = page.getByLabel('Body', { exact: true });
  await body.fill('{"name": "tried"');
  await page.getByRole('button', { name: 'Send POST …' }).click();
  await page
    .getByRole('alert')
    .getByText(/^body: /)
    .waitFor();
  await body.fill('{"name": "tried"}');
  await page.getByRole('button', { name: 'Send POST …' }).click();
  await page.getByRole('button', { name: 'Send POST', exact: true }).click();
  await page.getByText('400', { exact: true }).last().waitFor();
  await answer.getByText('endpoint is required').first().waitFor();
  await answer.getByText('"errors"').first().waitFor();
  await answer.getByText('"request_id"').first().waitFor();
  // Of the answer, which the page keeps as it came.
  await page.getByText('x-request-id', { exact: true }).waitFor();
  await body.fill(
    '{"name": "tried", "endpoint": "https://tried.example/", "events": ["event"], "disabled": true}',
  );
  await page.getByRole('button', { name: 'Send POST …' }).click();
  await page.getByRole('button', { name: 'Send POST', exact: true }).click();
  await answer.getByText('https://tried.example/').first().waitFor();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('link', { name: 'tried' }).waitFor();
  expect(await page.getByRole('link', { name: 'tried' }).count()).toBe(1);
  await page.context().close();
});

test('an answer of more than 200 KB is text until a worker reads its parts', async () => {
  const words = Array.from({ length: 900 }, (_, index) => `a word with the number ${index}`);
  for (let number = 1; number <= 8; number++)
    await world.send('/v1/track', {
      ...{ userId: 'long', event: 'Long', messageId: `long-${number}` },
      properties: { words },
    });
  const path = '/v1/customers/long/activities?type=event';
  await expect
    .poll(async () => {
      const { activities } = await world.call<{ activities: readonly unknown[] }>('GET', path);
      return activities.length;
    }, WAIT)
    .toBe(8);
  const page = await world.demoPage();
  await page.goto(`${world.url}/docs/customers/listCustomerActivities`);
  await page.getByLabel(/^identifier /).fill('long');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  const parts = page.getByRole('tree', { name: 'Parts of The answer' });
  const activities = parts.getByText(/"activities": \[ … \d+ \]/);
  await page.getByRole('button', { name: 'Show its parts' }).waitFor();
  expect(await parts.count()).toBe(0);
  await page.getByRole('button', { name: 'Show its parts' }).click();
  await activities.waitFor();
  await activities.locator('.fold').click();
  await parts.getByText('{ … ').first().waitFor();
  await page.getByRole('button', { name: 'Raw', exact: true }).click();
  await page
    .getByRole('region', { name: 'The answer' })
    .getByText('a word with the number 899')
    .waitFor();
  await page.context().close();
});

test('a call shows the fields of all levels and forms, of its body and of its answers', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/docs/track/trackEntity`);
  const body = page.getByRole('table', { name: /^Body / });
  await body.getByRole('rowheader', { name: 'identifiers.email', exact: true }).waitFor();
  await body.getByRole('row', { name: /^type/ }).getByText('delivery', { exact: true }).waitFor();
  await page.getByText('Fields of 400').click();
  await page.getByRole('rowheader', { name: 'errors[].field' }).first().waitFor();

  await page.goto(`${world.url}/docs/reporting-webhooks/listReportingWebhooks`);
  const field = page.getByRole('rowheader', { name: 'reporting_webhooks[].endpoint' });
  await field.waitFor();
  expect(await field.innerText()).toContain('required');
  await page.context().close();
});

test('a sample has the required parameters and the body of its call', async () => {
  const page = await world.demoPage();
  const sample = page.getByRole('region', { name: 'Sample' });
  await page.goto(`${world.url}/docs/events/getStatistics`);
  await sample.getByText(`curl '${world.url}/v1/statistics?metric=events'`).waitFor();
  await page.goto(`${world.url}/docs/pipelines/sendStream`);
  await sample.getByText("-H 'Content-Type: application/x-ndjson'").waitFor();
  await sample.getByText('"event":"Order Completed"').waitFor();
  await page.goto(`${world.url}/docs/reporting-webhooks/deleteReportingWebhook`);
  await sample.getByText('/v1/reporting_webhooks/WEBHOOK_ID').waitFor();
  await page.getByText('Put your own value in the place of WEBHOOK_ID.').waitFor();
  expect(await sample.innerText()).not.toContain('{');
  await page.context().close();
});

test('a delivery has its fields and an example, and no sample that calls it', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/docs/all?find=customer_subscribed`);
  await page.getByRole('link', { name: 'A delivery of customer_subscribed', exact: true }).click();
  await page.getByText('POST to your endpoint').waitFor();
  await page.getByRole('rowheader', { name: 'data.identifiers.id' }).waitFor();
  await page.getByRole('region', { name: 'An example of the body' }).waitFor();
  expect(await page.getByRole('region', { name: 'Sample' }).count()).toBe(0);
  await page.context().close();
});
