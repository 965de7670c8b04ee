/**
 * The state of the fleet in the console.
 *
 * The operator finds its health and its backlog in two clicks, with the runbook beside.
 */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleUnderTest, startConsole } from './console-under-test.ts';

let world: ConsoleUnderTest;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('the page shows every process and shard, and links a problem to its runbook', async () => {
  const page = await world.demoPage();
  await page.getByRole('link', { name: 'Fleet' }).click();
  await page.getByText('Everything is well').waitFor();
  const processes = page.getByRole('table').first().getByRole('rowheader');
  await expect
    .poll(async () => (await processes.allInnerTexts()).toSorted(), { timeout: 60_000 })
    .toEqual(['api', 'intake', 'worker']);
  expect(await page.getByRole('table').last().getByRole('rowheader').allInnerTexts()).toEqual([
    '0',
    '1',
  ]);
  await sql`
    insert into parked_operations (environment_id, parked_id, envelope_id, operation, error)
    values (1, 'p1', 'e1', '{}', 'a bug')`.execute(world.fleet.database);
  const link = page.getByRole('link', { name: 'Runbook of OperationsAreParked' });
  await link.waitFor({ timeout: 60_000 });
  const [runbook] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  await runbook.getByRole('heading', { name: /^Events are not processed/ }).waitFor();
  await page.context().close();
});

test('calls with a mistyped write key are counted on the first page, which leads to the end of the key', async () => {
  const page = await world.demoPage();
  const tile = page.getByRole('link', { name: /with an unknown key in the last/ });
  await tile.getByText('0', { exact: true }).waitFor();
  for (let n = 0; n < 2; n++) {
    const answer = await fetch(`${world.fleet.intake.url}/v1/track`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa('mistyped_write_key:')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ userId: 'ada', event: 'Order' }),
    });
    expect([answer.status, await answer.json()]).toEqual([200, {}]);
  }
  await tile.getByText('2', { exact: true }).waitFor();
  await tile.click();
  const row = page.getByRole('row', { name: 'pipelines.track' });
  // The texts of its cells are read at once, whether it is there or not.
  await row.waitFor();
  expect(await row.getByRole('cell').allInnerTexts()).toEqual([
    '…_key',
    '2',
    expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/),
  ]);
  expect(await page.getByText('mistyped').count()).toBe(0);
  await page.getByRole('link', { name: 'keys of your workspaces' }).click();
  await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
  // The demo's keys end like the mistyped one. A site id is shown by its end, too.
  await page.getByRole('cell', { name: '…_key', exact: true }).first().waitFor();
  await page.getByRole('cell', { name: '…_key, site id …site', exact: true }).waitFor();
  await page.context().close();
});

test('a process that ends goes, and one that starts comes', async () => {
  const idsOf = async (service: string): Promise<string[]> => {
    const { rows } = await sql<{ id: string }>`
      select process_id as id from process_heartbeats where service = ${service}`.execute(
      world.fleet.database,
    );
    return rows.map(({ id }) => id);
  };
  await expect.poll(() => idsOf('worker'), { timeout: 60_000 }).toHaveLength(1);
  await world.fleet.worker.kill('SIGTERM');
  await expect.poll(() => idsOf('worker'), { timeout: 60_000 }).toEqual([]);
  expect(await idsOf('intake')).toHaveLength(1);
});

test('a user who is no admin of the operator sees no fleet', async () => {
  const { page } = await world.userPage('member');
  expect(await page.getByRole('link', { name: 'Fleet' }).count()).toBe(0);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(world.url);
  await page
    .getByRole('link', { name: /credits left/ })
    .first()
    .waitFor();
  await page.getByRole('heading', { name: 'Latest issues' }).waitFor();
  expect(await page.getByText('unknown key').count()).toBe(0);
  expect(asked).toContain('/v1/reporting_webhooks');
  expect(asked).not.toContain('/v1/fleet');
  const answer = await page.request.get(`${world.url}/v1/fleet`);
  expect(answer.status()).toBe(403);
  await page.goto(`${world.url}/fleet`);
  await page.getByText('This is not for your role').waitFor();
  await page.context().close();
});
