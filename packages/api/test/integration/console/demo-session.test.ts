/** The demo's button: one click, on this machine alone, for as long as the demo is open. */
import { revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const openDemo = (headers = {}) =>
  world.call('POST', '/console/session', { body: { demo: true }, headers });

test('where there is no demo, nobody is signed in to it', async () => {
  // The accounts with its numbers are others'.
  expect((await world.call('GET', '/console/session')).json().has_demo).toBe(false);
  expectProblem(await openDemo(), 403, 'forbidden');
});

test('a call opens the demo on this machine, and the session ends with it', async () => {
  const { database, a, b } = world.api;
  for (const { accountId } of [a, b])
    await database.transaction().execute(async (transaction) => {
      const { sql } = await import('kysely');
      for (const table of ['api_credentials', 'service_accounts', 'environments', 'accounts'])
        await sql`delete from ${sql.table(table)} where account_id = ${accountId}`.execute(
          transaction,
        );
    });
  await seedDemoWorkspace(database);
  const opened = await openDemo();
  expect(opened.statusCode).toBe(204);
  const cookie = cookieOf(opened);
  const me = await world.call('GET', '/console/me', { cookie });
  expect(me.json()).toMatchObject({
    user: { email: 'owner1@demo.example' },
    session: { way: 'demo' },
    workspaces: [{ id: 1 }],
  });

  const forwarded = { 'x-forwarded-for': '203.0.113.9' };
  expectProblem(await openDemo(forwarded), 403, 'forbidden');
  const answer = await world.call('GET', '/console/me', { cookie, headers: forwarded });
  expectProblem(answer, 403, 'forbidden');

  await revokeDemoCredentials(database);
  expectProblem(await world.call('GET', '/console/me', { cookie }), 401, 'unauthorized');
  expectProblem(await openDemo(), 403, 'forbidden');
});
