/** A program that a user lets in by a code: its credentials, and their end. */
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../../support/error-shapes.ts';
import { type ConsoleWorld, startConsole } from '../../support/console-world.ts';
import { createDeviceLogins, errorOf, type DeviceLogins } from './device-logins.ts';

let world: ConsoleWorld;
let logins: DeviceLogins;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());
beforeEach(async () => {
  logins = await createDeviceLogins(world);
});

test('a user types the code, and the program gets a token and a key of its own, which can be revoked', async () => {
  const login = await logins.start();
  expect(login).toMatchObject({
    user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
    verification_uri: 'http://localhost/device',
    expires_in: 600,
    interval: 5,
  });
  expect(errorOf(await logins.ask(login))).toBe('authorization_pending');
  const shown = await logins.look(` ${login.user_code.toLowerCase()} `);
  expect(shown.json()).toMatchObject({ client_name: 'ada-laptop', is_same_network: false });
  expect((await logins.decide(login.user_code)).statusCode).toBe(204);
  const answer = await logins.ask(login);
  expect(answer.json()).toMatchObject({
    account_id: logins.tenant.accountId,
    environment_id: logins.tenant.environmentId,
    role: 'account_admin',
    user: logins.admin.email,
    read_only_key: false,
  });
  const { token, key, expires_at: expiresAt } = answer.json();
  // By the clock of Postgres, as all of it.
  expect(Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000)).toBe(90);
  expect(await logins.accountStatus(token)).toBe(200);
  expect((await world.api.call('GET', '/v1/workspaces', { key })).statusCode).toBe(200);

  const path = `/v1/accounts/${logins.tenant.accountId}/api_credentials`;
  const listed = await world.api.call('GET', path, { key: logins.tenant.token });
  const own = listed
    .json()
    .api_credentials.filter(({ name }: { name: string }) => name === 'sluice login on ada-laptop');
  expect(own).toMatchObject([
    { created_by_user_id: logins.admin.userId, type: 'service_account' },
    { created_by_user_id: logins.admin.userId, type: 'app' },
  ]);
  for (const { id } of own)
    expect(
      (await world.api.call('DELETE', `${path}/${id}`, { key: logins.tenant.token })).statusCode,
    ).toBe(200);
  expect(await logins.accountStatus(token)).toBe(401);
});

test('a member gives no more than the member may: a token of a member, and a key that reads', async () => {
  const member = await world.insertUser(logins.tenant, 'member');
  const made = await logins.letIn(await world.signIn(member.email));
  expect(made).toMatchObject({ role: 'member', read_only_key: true });
  const write = await world.api.call('POST', '/v1/reporting_webhooks', {
    key: made.key ?? '',
    body: {},
  });
  expectProblem(write, 403, 'read_only');
  const path = `/v1/accounts/${logins.tenant.accountId}/api_credentials`;
  expectProblem(await world.api.call('GET', path, { key: made.token }), 403, 'forbidden');
});

test('without a workspace the program gets a token alone', async () => {
  expect(await logins.letIn(logins.cookie, null)).toMatchObject({ key: null });
});

test('a program that the user does not let in gets the refusal, once', async () => {
  const login = await logins.start();
  expect((await logins.decide(login.user_code, { approve: false })).statusCode).toBe(204);
  expect(errorOf(await logins.ask(login))).toBe('access_denied');
  expect(errorOf(await logins.ask(login))).toBe('expired_token');
});

test.each<[string, () => Promise<unknown>]>([
  [
    'is removed',
    () =>
      world.api.call(
        'DELETE',
        `/v1/accounts/${logins.tenant.accountId}/users/${logins.admin.userId}`,
        {
          key: logins.tenant.token,
        },
      ),
  ],
  [
    'has another role',
    () =>
      sql`update users set role = 'member' where user_id = ${logins.admin.userId}`.execute(
        world.api.database,
      ),
  ],
])('credentials end at once if the user %s', async (_what, change) => {
  // Another admin stays.
  await world.insertUser(logins.tenant, 'account_admin');
  const { token, key } = await logins.letIn();
  expect(await logins.accountStatus(token)).toBe(200);
  await change();
  expect(await logins.accountStatus(token)).toBe(401);
  expect((await world.api.call('GET', '/v1/workspaces', { key: key ?? '' })).statusCode).toBe(401);
});

test('a key ends if the user leaves the workspace', async () => {
  const { token, key } = await logins.letIn();
  await sql`delete from memberships where user_id = ${logins.admin.userId}`.execute(
    world.api.database,
  );
  expect(await logins.accountStatus(token)).toBe(200);
  expect((await world.api.call('GET', '/v1/workspaces', { key: key ?? '' })).statusCode).toBe(401);
});
