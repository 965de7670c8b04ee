/** The demo's button: one click, on this machine alone, for as long as the demo is open. */
import { DEMO, revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';

const PROVIDER = {
  issuer: 'https://login.example.com',
  client_id: 'a',
  client_secret: 'b',
  email_domains: ['example.com'],
};

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const openDemo = (headers = {}) =>
  world.call('POST', '/console/session', { body: { demo: true }, headers });

test('without a demo workspace the demo sign-in is refused', async () => {
  // The accounts with its numbers are others'.
  expect((await world.call('GET', '/console/session')).json().has_demo).toBe(false);
  expectProblem(await openDemo(), 403, 'forbidden');
});

test('a call opens the demo on this machine, and the session ends with it', async () => {
  const { database, a, b } = world.api;
  for (const { accountId } of [a, b])
    await database.transaction().execute(async (transaction) => {
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

test('a visitor of the demo cannot invite, change, remove or sign out its users, or set an identity provider', async () => {
  const { app, database } = world.api;
  await seedDemoWorkspace(database);
  const cookie = cookieOf(await openDemo());
  const me = (await world.call('GET', '/console/me', { cookie })).json();
  const made = await world.call('POST', '/v1/accounts/1/api_credentials', {
    cookie,
    body: { type: 'service_account', name: 'Of a visitor', role: 'account_admin' },
  });
  // A visitor's own token works from anywhere.
  const bearers = [DEMO.accountToken, made.json().secret as string];
  const email = world.newAddress();
  const calls = [
    ['POST', 'users', { email, role: 'account_admin', environment_ids: [] }],
    ['PUT', `users/${me.user.id}`, { role: 'member' }],
    ['DELETE', `users/${me.user.id}`, undefined],
    ['DELETE', `users/${me.user.id}/sessions`, undefined],
    ['DELETE', `users/${me.user.id}/second_factor`, undefined],
    ['PUT', 'identity_provider', PROVIDER],
    ['DELETE', 'identity_provider', undefined],
  ] as const;
  for (const [method, path, body] of calls) {
    const url = `/v1/accounts/1/${path}`;
    const given = { ...(body && { body }) };
    const answers = [
      await world.call(method, url, { cookie, ...given }),
      ...(await Promise.all(
        bearers.map((token) =>
          app.inject({
            method,
            url,
            headers: { authorization: `Bearer ${token}` },
            ...(body && { payload: body }),
          }),
        ),
      )),
    ];
    for (const answer of answers) {
      expectProblem(answer, 403, 'forbidden');
      expect(answer.json().detail).toContain('the demo, which everybody may open');
    }
  }
  const { rows } = await sql`
    select email from users where account_id = 1 and status <> 'deactivated'`.execute(database);
  expect(rows).toEqual([{ email: 'owner1@demo.example' }]);
  const invited = await world.call('POST', '/v1/accounts/1/users', {
    cookie: await world.signIn('owner1@demo.example'),
    body: { email, role: 'member', environment_ids: [] },
  });
  expect(invited.statusCode).toBe(200);
  expect((await openDemo()).statusCode).toBe(204);
});
