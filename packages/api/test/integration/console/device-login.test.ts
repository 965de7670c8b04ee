/** A program that a user lets in by a code, under attack. */
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant, type Tenant } from '../support/api-under-test.ts';
import { type ConsoleWorld, startConsole } from '../support/console-world.ts';

let world: ConsoleWorld;
let count = 0;
let tenant: Tenant;
let admin: { email: string; userId: number };
let cookie: string;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());
beforeEach(async () => {
  tenant = await insertTenant(world.api.database, `lets_in_${++count}`);
  admin = await world.insertUser(tenant, 'account_admin');
  cookie = await world.signIn(admin.email);
});

interface Login {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly expires_in: number;
  readonly interval: number;
}

/** As the program calls, which is no browser. */
const callAsProgram = (path: string, body: object, ip = world.newIp()) =>
  world.api.app.inject({
    method: 'POST',
    url: `/v1/device_logins${path}`,
    remoteAddress: ip,
    headers: { 'content-type': 'application/json', host: 'localhost:80' },
    payload: JSON.stringify(body),
  });
const start = async (ip?: string): Promise<Login> => {
  const answer = await callAsProgram('', { client_name: 'ada-laptop' }, ip);
  expect(answer.statusCode).toBe(200);
  return answer.json();
};
/** As `interval` seconds after the question before. */
async function ask({ device_code }: Pick<Login, 'device_code'>) {
  await sql`update device_logins set polled_at = polled_at - interval '1 hour'`.execute(
    world.api.database,
  );
  return callAsProgram('/token', { device_code });
}
const look = (code: string, session = cookie, ip?: string) =>
  world.call('POST', '/console/device', { cookie: session, body: { code }, ...(ip && { ip }) });
const decide = (
  code: string,
  {
    approve = true,
    session = cookie,
    environment = tenant.environmentId,
  }: { approve?: boolean; session?: string; environment?: number | null } = {},
) =>
  world.call('POST', '/console/device/decision', {
    cookie: session,
    body: { code, approve, environment_id: environment },
  });
const errorOf = (answer: { json(): { error?: string } }): string | undefined => answer.json().error;
async function letIn(
  session = cookie,
  environment: number | null = tenant.environmentId,
): Promise<{ token: string; key: string | null; read_only_key: boolean; role: string }> {
  const login = await start();
  expect((await decide(login.user_code, { session, environment })).statusCode).toBe(204);
  const answer = await ask(login);
  expect(answer.statusCode).toBe(200);
  return answer.json();
}
const accountStatus = async (token: string): Promise<number> => {
  // A token is remembered for a second.
  world.api.clock.nowMs += 2_000;
  const path = `/v1/accounts/${tenant.accountId}`;
  return (await world.api.call('GET', path, { key: token })).statusCode;
};

test('a user types the code, and the program gets a token and a key of its own, which can be revoked', async () => {
  const login = await start();
  expect(login).toMatchObject({
    user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
    verification_uri: 'http://localhost/device',
    expires_in: 600,
    interval: 5,
  });
  expect(errorOf(await ask(login))).toBe('authorization_pending');
  const shown = await look(` ${login.user_code.toLowerCase()} `);
  expect(shown.json()).toMatchObject({ client_name: 'ada-laptop', is_same_network: false });
  expect((await decide(login.user_code)).statusCode).toBe(204);
  const answer = await ask(login);
  expect(answer.json()).toMatchObject({
    account_id: tenant.accountId,
    environment_id: tenant.environmentId,
    role: 'account_admin',
    user: admin.email,
    read_only_key: false,
  });
  const { token, key, expires_at: expiresAt } = answer.json();
  // By the clock of Postgres, as all of it.
  expect(Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000)).toBe(90);
  expect(await accountStatus(token)).toBe(200);
  expect((await world.api.call('GET', '/v1/workspaces', { key })).statusCode).toBe(200);

  const path = `/v1/accounts/${tenant.accountId}/api_credentials`;
  const listed = await world.api.call('GET', path, { key: tenant.token });
  const own = listed
    .json()
    .api_credentials.filter(({ name }: { name: string }) => name === 'sluice login on ada-laptop');
  expect(own).toMatchObject([
    { created_by_user_id: admin.userId, type: 'service_account' },
    { created_by_user_id: admin.userId, type: 'app' },
  ]);
  for (const { id } of own)
    expect(
      (await world.api.call('DELETE', `${path}/${id}`, { key: tenant.token })).statusCode,
    ).toBe(200);
  expect(await accountStatus(token)).toBe(401);
});

test('a member gives no more than the member may: a token of a member, and a key that reads', async () => {
  const member = await world.insertUser(tenant, 'member');
  const made = await letIn(await world.signIn(member.email));
  expect(made).toMatchObject({ role: 'member', read_only_key: true });
  const write = await world.api.call('POST', '/v1/reporting_webhooks', {
    key: made.key ?? '',
    body: {},
  });
  expectProblem(write, 403, 'read_only');
  const path = `/v1/accounts/${tenant.accountId}/api_credentials`;
  expectProblem(await world.api.call('GET', path, { key: made.token }), 403, 'forbidden');
});

test('without a workspace the program gets a token alone', async () => {
  expect(await letIn(cookie, null)).toMatchObject({ key: null });
});

test('a program that the user does not let in gets the refusal, once', async () => {
  const login = await start();
  expect((await decide(login.user_code, { approve: false })).statusCode).toBe(204);
  expect(errorOf(await ask(login))).toBe('access_denied');
  expect(errorOf(await ask(login))).toBe('expired_token');
});

test.each<[string, () => Promise<unknown>]>([
  [
    'is removed',
    () =>
      world.api.call('DELETE', `/v1/accounts/${tenant.accountId}/users/${admin.userId}`, {
        key: tenant.token,
      }),
  ],
  [
    'has another role',
    () =>
      sql`update users set role = 'member' where user_id = ${admin.userId}`.execute(
        world.api.database,
      ),
  ],
])('credentials end at once if the user %s', async (_what, change) => {
  // Another admin stays.
  await world.insertUser(tenant, 'account_admin');
  const { token, key } = await letIn();
  expect(await accountStatus(token)).toBe(200);
  await change();
  expect(await accountStatus(token)).toBe(401);
  expect((await world.api.call('GET', '/v1/workspaces', { key: key ?? '' })).statusCode).toBe(401);
});

test('a key ends if the user leaves the workspace', async () => {
  const { token, key } = await letIn();
  await sql`delete from memberships where user_id = ${admin.userId}`.execute(world.api.database);
  expect(await accountStatus(token)).toBe(200);
  expect((await world.api.call('GET', '/v1/workspaces', { key: key ?? '' })).statusCode).toBe(401);
});

// Attacks.

test('a login is good once: neither a second question nor a second code gets anything', async () => {
  const login = await start();
  await decide(login.user_code);
  const answers = await Promise.all([1, 2, 3].map(() => callAsProgram('/token', login2(login))));
  expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
  expect(errorOf(await ask(login))).toBe('expired_token');
  expectProblem(await decide(login.user_code), 422, 'invalid_code');
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_credentials
     where account_id = ${tenant.accountId} and for_user_id = ${admin.userId}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([{ count: 2 }]);
});
const login2 = ({ device_code }: Login) => ({ device_code });

test('the first decision stands against another user with the code', async () => {
  const login = await start();
  await decide(login.user_code, { approve: false });
  const other = await insertTenant(world.api.database, `other_${++count}`);
  const mallory = await world.insertUser(other, 'account_admin');
  const theirs = await world.signIn(mallory.email);
  expectProblem(
    await decide(login.user_code, { session: theirs, environment: other.environmentId }),
    422,
    'invalid_code',
  );
  expect(errorOf(await ask(login))).toBe('access_denied');
});

test('a user opens no workspace but their own', async () => {
  const other = await insertTenant(world.api.database, `other_${++count}`);
  const login = await start();
  expectProblem(
    await decide(login.user_code, { environment: other.environmentId }),
    422,
    'validation_failed',
  );
  expect(errorOf(await ask(login))).toBe('authorization_pending');
  // Nor one that they left between the decision and the question.
  await decide(login.user_code);
  await sql`delete from memberships where user_id = ${admin.userId}`.execute(world.api.database);
  expect(errorOf(await ask(login))).toBe('access_denied');
});

test('a right that the user has lost before the program asks is not given', async () => {
  const login = await start();
  await decide(login.user_code);
  await sql`update users set status = 'deactivated' where user_id = ${admin.userId}`.execute(
    world.api.database,
  );
  expect(errorOf(await ask(login))).toBe('access_denied');
});

test('codes are guessed at no higher rate than 20 an hour a user, right ones counted too', async () => {
  const login = await start();
  const answers = [];
  for (let tried = 0; tried < 21; tried += 1) answers.push(await look('BBBB-BBBB'));
  expect(answers.slice(0, 20).every(({ statusCode }) => statusCode === 422)).toBe(true);
  expectProblem(answers[20]!, 429, 'too_many_attempts');
  expectProblem(await decide(login.user_code), 429, 'too_many_attempts');
});

test('a secret of a program is not guessed, and a code is not a secret', async () => {
  const login = await start();
  await decide(login.user_code);
  for (const device_code of ['A'.repeat(43), `${login.device_code.slice(0, 42)}_`])
    if (device_code !== login.device_code)
      expect(errorOf(await callAsProgram('/token', { device_code }))).toBe('expired_token');
  expectProblem(
    await callAsProgram('/token', { device_code: login.user_code }),
    400,
    'invalid_request',
  );
});

test('ten minutes after its start a login is over, also if it was approved', async () => {
  const [late, approved] = [await start(), await start()];
  await decide(approved.user_code);
  await sql`
    update device_logins set started_at = started_at - interval '10 minutes 1 second'`.execute(
    world.api.database,
  );
  expectProblem(await look(late.user_code), 422, 'invalid_code');
  for (const login of [late, approved]) expect(errorOf(await ask(login))).toBe('expired_token');
});

test('a program that asks too fast is slowed down, each time more', async () => {
  const login = await start();
  expect(errorOf(await callAsProgram('/token', login2(login)))).toBe('authorization_pending');
  // However long the call takes.
  const askEarly = async () => {
    await sql`update device_logins set polled_at = polled_at + interval '1 minute'`.execute(
      world.api.database,
    );
    return callAsProgram('/token', login2(login));
  };
  const early = await askEarly();
  expect(early.json()).toMatchObject({ error: 'slow_down', interval: 10 });
  // A question too early is refused also after the decision of the user.
  await decide(login.user_code);
  expect((await askEarly()).json()).toMatchObject({
    error: 'slow_down',
    interval: 15,
  });
  expect((await ask(login)).statusCode).toBe(200);
});

test('an address begins 30 logins an hour at most', async () => {
  const ip = world.newIp();
  const begin = () => callAsProgram('', { client_name: 'a' }, ip);
  const answers = await Promise.all(Array.from({ length: 31 }, begin));
  expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(1);
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
  expectProblem(await callAsProgram('', { client_name: name }), 400, 'invalid_request');
});

test('the screen shows whether the program asked from the network of the browser', async () => {
  const ip = world.newIp();
  const login = await start(ip);
  expect((await look(login.user_code, cookie, ip)).json().is_same_network).toBe(true);
  expect((await look(login.user_code)).json()).toMatchObject({
    is_same_network: false,
    ip_addr: ip,
  });
});

test('only a user lets a program in: no token, no session of a token, no page of another site', async () => {
  const login = await start();
  const body = { code: login.user_code, approve: true, environment_id: null };
  const byToken = await world.api.call('POST', '/console/device/decision', {
    key: tenant.token,
    body,
  });
  expectProblem(byToken, 403, 'forbidden');
  const pasted = await world.call('POST', '/console/session', { body: { token: tenant.token } });
  const ofToken = String(pasted.headers['set-cookie']).split(';')[0] ?? '';
  expectProblem(
    await decide(login.user_code, { session: ofToken, environment: null }),
    403,
    'forbidden',
  );
  const foreign = await world.call('POST', '/console/device/decision', {
    cookie,
    body,
    headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
  });
  expectProblem(foreign, 403, 'forbidden');
  expect(errorOf(await ask(login))).toBe('authorization_pending');
});

test('a program’s token opens no session in the console', async () => {
  const { token } = await letIn();
  const answer = await world.call('POST', '/console/session', { body: { token } });
  expectProblem(answer, 401, 'unauthorized');
});

test('a database that is read has no secret and no code of a login', async () => {
  const login = await start();
  const { rows } = await sql<{ text: string }>`
    select string_agg(d::text, ' ') as text from device_logins d`.execute(world.api.database);
  const text = rows[0]?.text ?? '';
  expect(text).toContain('ada-laptop');
  for (const secret of [login.device_code, login.user_code, login.user_code.replace('-', '')]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString('hex'));
  }
});
