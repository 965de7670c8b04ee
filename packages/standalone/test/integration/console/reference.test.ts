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
  await page.getByRole('rowheader', { name: 'endpoint' }).waitFor();
  await page.context().close();
});

test('a read is sent at once, a write after it was asked for, and a refusal is shown as the answer that it is', async () => {
  const page = await world.demoPage();
  await page.goto(`${world.url}/docs/workspaces/getWorkspace`);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  const answer = page.getByRole('region', { name: 'The answer' });
  await answer.getByText('"workspaces"').waitFor();

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
  await answer.getByText('endpoint is required').waitFor();
  await body.fill(
    '{"name": "tried", "endpoint": "https://tried.example/", "events": ["event"], "disabled": true}',
  );
  await page.getByRole('button', { name: 'Send POST …' }).click();
  await page.getByRole('button', { name: 'Send POST', exact: true }).click();
  await answer.getByText('https://tried.example/').waitFor();
  await page.goto(`${world.url}/webhooks`);
  await page.getByRole('link', { name: 'tried' }).waitFor();
  expect(await page.getByRole('link', { name: 'tried' }).count()).toBe(1);
  await page.context().close();
});
