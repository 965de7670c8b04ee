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
  await page.goto(`${world.url}/fleet`);
  await page.getByText('This is not for your role').waitFor();
  await page.context().close();
});
