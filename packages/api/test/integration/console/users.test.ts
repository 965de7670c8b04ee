/** Security: the rights to invite, change and remove users, and the end of their sessions. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const usersOf = (tenant = world.api.a) => `/v1/accounts/${tenant.accountId}/users`;

async function admin(tenant = world.api.a) {
  const user = await world.insertUser(tenant, 'account_admin');
  return { ...user, cookie: await world.signIn(user.email) };
}

async function invite(cookie: string, given: object = {}) {
  const email = world.newAddress();
  const answer = await world.call('POST', usersOf(), {
    cookie,
    body: { email, role: 'member', environment_ids: [world.api.a.environmentId], ...given },
  });
  return { email, answer };
}

test('an invited user gets a mail, proves the address by the code, and is active from then on', async () => {
  const { cookie, email: inviter } = await admin();
  const { email, answer } = await invite(cookie, { first_name: 'Grace' });
  expect(answer.statusCode).toBe(200);
  expect(answer.json().user).toMatchObject({ email, role: 'member', status: 'invited' });
  await world.relay();
  const [mail] = world.mails.filter(({ to }) => to === email);
  expect(mail?.text).toContain('You may sign in to the console of Sluice as a user of');

  const own = await world.signIn(email);
  const me = (await world.call('GET', '/console/me', { cookie: own })).json();
  expect(me).toMatchObject({
    user: { email, role: 'member' },
    workspaces: [{ id: world.api.a.environmentId }],
  });
  const { audit_logs: entries } = (
    await world.call('GET', `/v1/accounts/${world.api.a.accountId}/audit_logs?object_type=user`, {
      cookie,
    })
  ).json();
  expect(
    entries
      .filter((each: { object_id: string }) => each.object_id === String(me.user.id))
      .map((each: { action: string; actor: { email: string } }) => [each.action, each.actor.email]),
  ).toEqual([
    ['updated', email],
    ['created', inviter],
  ]);
});

test('a member cannot change users, and an administrator cannot reach the users of another account', async () => {
  const { cookie } = await admin();
  const { email, answer } = await invite(cookie);
  const { id } = answer.json().user;
  const member = await world.signIn(email);
  const other = await admin(world.api.b);
  const calls = [
    ['POST', '', { email: world.newAddress(), role: 'account_admin', environment_ids: [] }],
    ['PUT', `/${id}`, { role: 'account_admin' }],
    ['DELETE', `/${id}`, undefined],
    ['DELETE', `/${id}/sessions`, undefined],
    ['DELETE', `/${id}/second_factor`, undefined],
  ] as const;
  for (const [method, path, body] of calls) {
    const options = { ...(body && { body }) };
    expectProblem(
      await world.call(method, usersOf() + path, { ...options, cookie: member }),
      403,
      'forbidden',
    );
    expectProblem(
      await world.call(method, usersOf() + path, { ...options, cookie: other.cookie }),
      404,
      'not_found',
    );
    if (path === '') continue;
    // By the path of the own account, with the number of another's user.
    const swapped = `${usersOf(world.api.b)}${path}`;
    expectProblem(
      await world.call(method, swapped, { ...options, cookie: other.cookie }),
      404,
      'not_found',
    );
  }
  expect((await world.call('GET', '/console/me', { cookie: member })).json().user.role).toBe(
    'member',
  );
});

test.each([
  ['is bound to addresses', { ipAllowlist: ['127.0.0.1'] }],
  ['expires', { expiresAt: new Date(Date.now() + 86_400_000).toISOString() }],
])('a token that %s cannot invite users or change the role of a user', async (what, limits) => {
  const { api } = world;
  const member = await world.insertUser(api.a, 'member');
  const key = `sa_sandbox_${what.replaceAll(' ', '_')}`;
  await insertToken(api.database, api.a.accountId, key, limits);
  const role = 'account_admin';
  const email = world.newAddress();
  const invitation = { email, role, environment_ids: [] };
  const lent = await api.app.inject({
    method: 'POST',
    url: '/v1/service_accounts/oauth/token',
    payload: { grant_type: 'client_credentials', client_secret: key },
  });
  for (const each of [key, lent.json().access_token as string]) {
    const post = await api.call('POST', usersOf(), { key: each, body: invitation });
    expectProblem(post, 403, 'forbidden');
    const path = `${usersOf()}/${member.userId}`;
    expectProblem(await api.call('PUT', path, { key: each, body: { role } }), 403, 'forbidden');
  }
  const free = { key: api.a.token, body: invitation };
  expect((await api.call('POST', usersOf(), free)).statusCode).toBe(200);
});

test('a role that is changed holds for the next call of an open session', async () => {
  const { cookie } = await admin();
  const { email, answer } = await invite(cookie);
  const path = `${usersOf()}/${answer.json().user.id}`;
  const own = await world.signIn(email);
  const list = () =>
    world.call('GET', `/v1/accounts/${world.api.a.accountId}/all_users`, { cookie: own });
  expectProblem(await list(), 403, 'forbidden');
  expect(
    (await world.call('PUT', path, { cookie, body: { role: 'account_admin' } })).json().user.role,
  ).toBe('account_admin');
  expect((await list()).statusCode).toBe(200);
  expect(
    (
      await world.call('PUT', path, { cookie, body: { role: 'member', environment_ids: [] } })
    ).json().user,
  ).toMatchObject({ role: 'member', environment_ids: [] });
  expectProblem(await list(), 403, 'forbidden');
  const workspace = world.api.a.environmentId;
  expectProblem(
    await world.call('GET', '/v1/workspaces', { cookie: own, workspace }),
    403,
    'environment_not_owned',
  );
});

test('a removed user is signed out and cannot sign in until the next invitation', async () => {
  const { cookie } = await admin();
  const { email, answer } = await invite(cookie);
  const path = `${usersOf()}/${answer.json().user.id}`;
  const own = await world.signIn(email);
  expect((await world.call('DELETE', path, { cookie })).statusCode).toBe(204);
  expectProblem(await world.call('GET', '/console/me', { cookie: own }), 401, 'unauthorized');
  world.api.clock.nowMs += 3_600_000;
  const codes = () =>
    world.mails.filter(({ to, text }) => to === email && text.includes('code to sign in')).length;
  const before = codes();
  await world.mailedCode(email);
  expect(codes()).toBe(before);
  expectProblem(await world.call('DELETE', path, { cookie }), 404, 'not_found');
  const again = await world.call('POST', usersOf(), {
    cookie,
    body: { email, role: 'member', environment_ids: [] },
  });
  expect(again.json().user).toMatchObject({ id: answer.json().user.id, status: 'invited' });
  world.api.clock.nowMs += 3_600_000;
  await world.signIn(email);
});

test('an account keeps its last active account_admin, even if two leave at the same time', async () => {
  const { database, b } = world.api;
  await sql`update users set role = 'member' where account_id = ${b.accountId}`.execute(database);
  const [one, other] = [await admin(b), await admin(b)];
  const leave = ({ userId, cookie }: typeof one, method: 'PUT' | 'DELETE') =>
    world.call(method, `${usersOf(b)}/${userId}`, {
      cookie,
      ...(method === 'PUT' && { body: { role: 'member' } }),
    });
  const answers = await Promise.all([leave(one, 'PUT'), leave(other, 'DELETE')]);
  expect(answers.filter(({ statusCode }) => statusCode === 409)).toHaveLength(1);
  const { rows } = await sql`
    select 1 from users where account_id = ${b.accountId} and role = 'account_admin'
       and status = 'active'`.execute(database);
  expect(rows).toHaveLength(1);
});

test('an address that is a user’s of the account already, and a foreign workspace are refused by field', async () => {
  const { cookie, email } = await admin();
  for (const taken of [email, email.toUpperCase().replace(/@.*/, (end) => end.toLowerCase())])
    expectProblem((await invite(cookie, { email: taken })).answer, 422, 'validation_failed');
  const workspaces = [world.api.a.environmentId, world.api.b.environmentId];
  const { email: unknown, answer } = await invite(cookie, { environment_ids: workspaces });
  expectProblem(answer, 422, 'validation_failed');
  expect(answer.json().errors[0].field).toBe('environment_ids');
  const { rows } = await sql`select 1 from users where email = ${unknown}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([]);
});

test('an account_admin ends the sessions of another and resets the factor, but not the own one', async () => {
  const { cookie, userId } = await admin();
  const { email, answer } = await invite(cookie);
  const path = `${usersOf()}/${answer.json().user.id}`;
  const sessions = [await world.signIn(email), await world.signIn(email)];
  const ended = await world.call('DELETE', `${path}/sessions`, { cookie });
  expect(ended.json()).toEqual({ ended: 2, programs_ended: 0 });
  for (const own of sessions)
    expectProblem(await world.call('GET', '/console/me', { cookie: own }), 401, 'unauthorized');
  expectProblem(await world.call('DELETE', `${path}/second_factor`, { cookie }), 409, 'conflict');
  await sql`
    insert into second_factors (account_id, user_id, secret, confirmed_at)
    values (${world.api.a.accountId}, ${answer.json().user.id}, 'x', now())`.execute(
    world.api.database,
  );
  await sql`
    update users set is_two_factor_enabled = true where user_id = ${answer.json().user.id}`.execute(
    world.api.database,
  );
  const reset = await world.call('DELETE', `${path}/second_factor`, { cookie });
  expect(reset.statusCode).toBe(204);
  world.api.clock.nowMs += 3_600_000;
  const own = await world.signIn(email);
  expect((await world.call('GET', '/console/me', { cookie: own })).statusCode).toBe(200);
  const mine = `${usersOf()}/${userId}/second_factor`;
  expectProblem(await world.call('DELETE', mine, { cookie }), 409, 'conflict');
});

test('an invitation that is sent twice under one key is one, and a hundred a day are the most', async () => {
  const { cookie, email: address } = await admin();
  const send = (email: string, key: string) =>
    world.call('POST', usersOf(), {
      cookie,
      headers: { 'idempotency-key': key },
      body: { email, role: 'member', environment_ids: [] },
    });
  const email = world.newAddress();
  const answers = [await send(email, 'one-key'), await send(email, 'one-key')];
  expect(answers.map((each) => each.json().user?.id)).toEqual(
    Array(2).fill(answers[0]?.json().user.id),
  );
  await world.relay();
  expect(world.mails.filter(({ to }) => to === email)).toHaveLength(1);
  // The invitations of the tests before count too. A day later they do not.
  world.api.clock.nowMs += 86_400_000;
  const tomorrow = await world.signIn(address);
  const invitations = await Promise.all(Array.from({ length: 102 }, () => invite(tomorrow)));
  const statuses = invitations.map(({ answer }) => answer.statusCode);
  expect(statuses.filter((status) => status === 200)).toHaveLength(100);
  expect(statuses.filter((status) => status === 429)).toHaveLength(2);
});
