/** The user's decision about a program, under attack: others' codes, lost rights, deceptive names. */
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

test('the first decision stands against another user with the code', async () => {
  const login = await logins.start();
  await logins.decide(login.user_code, { approve: false });
  const other = await logins.newTenant();
  const mallory = await world.insertUser(other, 'account_admin');
  const theirs = await world.signIn(mallory.email);
  expectProblem(
    await logins.decide(login.user_code, { session: theirs, environment: other.environmentId }),
    422,
    'invalid_code',
  );
  expect(errorOf(await logins.ask(login))).toBe('access_denied');
});

test('a user opens no workspace but their own', async () => {
  const other = await logins.newTenant();
  const login = await logins.start();
  expectProblem(
    await logins.decide(login.user_code, { environment: other.environmentId }),
    422,
    'validation_failed',
  );
  expect(errorOf(await logins.ask(login))).toBe('authorization_pending');
  // Nor one that they left between the decision and the question.
  await logins.decide(login.user_code);
  await sql`delete from memberships where user_id = ${logins.admin.userId}`.execute(
    world.api.database,
  );
  expect(errorOf(await logins.ask(login))).toBe('access_denied');
});

test('a right that the user has lost before the program asks is not given', async () => {
  const login = await logins.start();
  await logins.decide(login.user_code);
  await sql`update users set status = 'deactivated' where user_id = ${logins.admin.userId}`.execute(
    world.api.database,
  );
  expect(errorOf(await logins.ask(login))).toBe('access_denied');
});

// The user reads it on the screen where a program is let in.
test.each([
  'Sluice support asks you to press Let it in',
  'https://evil.test',
  'a/b',
  'ada‮laptop',
  'adaｌaptop',
  'a\nb',
  '<b>ada</b>',
  '',
  '-ada',
  'a'.repeat(64),
])('the name of a program cannot be a sentence or an address: %j', async (name) => {
  expectProblem(await logins.callAsProgram('', { client_name: name }), 400, 'invalid_request');
});

test('the screen shows whether the program asked from the network of the browser', async () => {
  const ip = world.newIp();
  const login = await logins.start(ip);
  expect((await logins.look(login.user_code, logins.cookie, ip)).json().is_same_network).toBe(true);
  expect((await logins.look(login.user_code)).json()).toMatchObject({
    is_same_network: false,
    ip_addr: ip,
  });
});

test('only a user lets a program in: no token, no session of a token, no page of another site', async () => {
  const login = await logins.start();
  const body = { code: login.user_code, approve: true, environment_id: null };
  const byToken = await world.api.call('POST', '/console/device/decision', {
    key: logins.tenant.token,
    body,
  });
  expectProblem(byToken, 403, 'forbidden');
  const pasted = await world.call('POST', '/console/session', {
    body: { token: logins.tenant.token },
  });
  const ofToken = String(pasted.headers['set-cookie']).split(';')[0] ?? '';
  expectProblem(
    await logins.decide(login.user_code, { session: ofToken, environment: null }),
    403,
    'forbidden',
  );
  const foreign = await world.call('POST', '/console/device/decision', {
    cookie: logins.cookie,
    body,
    headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
  });
  expectProblem(foreign, 403, 'forbidden');
  expect(errorOf(await logins.ask(login))).toBe('authorization_pending');
});

test('a program’s token opens no session in the console', async () => {
  const { token } = await logins.letIn();
  const answer = await world.call('POST', '/console/session', { body: { token } });
  expectProblem(answer, 401, 'unauthorized');
});
