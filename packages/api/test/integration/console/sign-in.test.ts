/** Signing in to the console with a mailed code. From the address to an answer of both halves of the API. */
import { keepOperatorCode } from '@sluice/database/users/sign-in-codes';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { otherThan } from '../support/signup-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

test('a mailed code opens only the account and the workspace of its user', async () => {
  const { api } = world;
  const { email, userId } = await world.insertUser(api.a, 'account_admin');
  const cookie = await world.signIn(email);

  const me = await world.call('GET', '/console/me', { cookie });
  expect(me.json()).toMatchObject({
    user: { id: userId, email, role: 'account_admin' },
    account: { id: api.a.accountId },
    workspaces: [{ id: api.a.environmentId, name: 'workspace of key_of_a' }],
    capabilities: [
      'workspace.read',
      'deliveries.retry',
      'deliveries.skip',
      'deliveries.replay',
      'webhooks.create',
      'webhooks.edit',
      'webhooks.rotate',
      'workspace.manage',
      'billing.buy',
      'account.manage',
    ],
  });
  const workspaces = await world.call('GET', '/v1/workspaces', {
    cookie,
    workspace: api.a.environmentId,
  });
  expect(workspaces.json().workspaces).toMatchObject([{ id: api.a.environmentId }]);
  const users = await world.call('GET', `/v1/accounts/${api.a.accountId}/all_users`, { cookie });
  const own = users.json().users.find((each: { id: number }) => each.id === userId);
  // By Postgres' clock, which is not the test's.
  expect(Date.now() - Date.parse(own.last_sign_in_at)).toBeLessThan(60_000);
});

test('the audit log names the user for the sign-in and for each change in the session', async () => {
  const { api } = world;
  const { email, userId } = await world.insertUser(api.a, 'account_admin');
  const cookie = await world.signIn(email);
  await world.call('PUT', `/v1/accounts/${api.a.accountId}`, {
    cookie,
    body: { account: { website: 'https://console.example' } },
  });
  const made = await world.call('POST', '/v1/reporting_webhooks', {
    cookie,
    workspace: api.a.environmentId,
    body: { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] },
  });
  expect(made.statusCode).toBe(200);
  const { audit_logs: entries } = (
    await world.call('GET', `/v1/accounts/${api.a.accountId}/audit_logs?user_id=${userId}`, {
      cookie,
    })
  ).json();
  expect(
    entries.map((each: { object_type: string; actor: { email: string } }) => [
      each.object_type,
      each.actor.email,
    ]),
  ).toEqual([
    ['reporting_webhook', email],
    ['account', email],
    ['console_session', email],
  ]);
});

test('a wrong, an expired and a used code, and an unknown address get one answer', async () => {
  const { api } = world;
  const { email } = await world.insertUser(api.a, 'member');
  const code = await world.mailedCode(email);
  const answers = [
    await world.giveCode(email, otherThan(code)),
    await world.giveCode('nobody@example.com', code),
  ];
  api.clock.nowMs += 11 * 60_000;
  answers.push(await world.giveCode(email, code));
  const newer = await world.mailedCode(email);
  expect((await world.giveCode(email, newer)).statusCode).toBe(204);
  answers.push(await world.giveCode(email, newer));
  const bodies = answers.map((answer) => {
    expectProblem(answer, 422, 'invalid_code');
    const { meta: _, ...body } = answer.json();
    return body;
  });
  for (const body of bodies) expect(body).toEqual(bodies[0]);
});

test('a code is good for five tries, and one network gets three codes an hour for an address', async () => {
  const { api } = world;
  const { email } = await world.insertUser(api.a, 'member');
  const ip = world.newIp();
  const code = await world.mailedCode(email, '', ip);
  await Promise.all(Array.from({ length: 5 }, () => world.giveCode(email, otherThan(code))));
  expectProblem(await world.giveCode(email, code), 422, 'invalid_code');
  for (let count = 0; count < 5; count++) await world.mailedCode(email, '', ip);
  expect(world.mails.filter(({ to }) => to === email)).toHaveLength(3);
});

const STRANGER = 'stranger';

/** Uses up all codes that the address gives the network, with five wrong tries at each. */
async function guessFrom(email: string, ip: string): Promise<void> {
  for (let start = 0; start < 4; start++) {
    await world.mailedCode(email, STRANGER, ip);
    for (let count = 0; count < 6; count++)
      await world.giveCode(email, '999999', undefined, STRANGER);
  }
}

// Security: an address is no secret, and a stranger who knows it must not keep its owner out.
test('a start that sends no mail leaves the code before it good', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const ip = world.newIp();
  for (let start = 1; start < 3; start++) await world.mailedCode(email, undefined, ip);
  const code = await world.mailedCode(email, undefined, ip);
  expect((await world.startCode(email, undefined, ip)).statusCode).toBe(200);
  expect((await world.giveCode(email, code)).statusCode).toBe(204);
});

test('an owner signs in in a new browser while a stranger guesses codes for the address', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const code = await world.mailedCode(email);
  await guessFrom(email, world.newIp());
  // Without the cookie of the start, and with the cookie of another start.
  for (let count = 0; count < 6; count++) {
    await world.giveCode(email, otherThan(code), undefined, 'browser without a start');
    await world.giveCode(email, otherThan(code), undefined, STRANGER);
  }
  expect((await world.giveCode(email, code)).statusCode).toBe(204);
});

test('a code opens no session in another browser', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const code = await world.mailedCode(email);
  await world.mailedCode('somebody.else@example.com', STRANGER);
  const other = await world.giveCode(email, code, undefined, STRANGER);
  expectProblem(other, 422, 'invalid_code');
  expect((await world.giveCode(email, code)).statusCode).toBe(204);
});

test('a day of guesses from one network leaves the address codes for the others', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const ip = world.newIp();
  for (let hour = 0; hour < 8; hour++) {
    await guessFrom(email, ip);
    world.api.clock.nowMs += 3_600_000;
  }
  expect(await world.signIn(email)).toContain('sluice');
});

test('a browser that has signed in gets its codes after strangers have used up all others', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  await world.signIn(email);
  for (let network = 0; network < 8; network++) await guessFrom(email, world.newIp());
  const mails = () => world.mails.filter(({ to }) => to === email).length;
  // One of the six codes of an hour was the owner's, before the browser was known.
  expect(mails()).toBe(6);
  await world.mailedCode(email, 'new browser');
  expect(mails()).toBe(6);
  await world.signIn(email);
  // The cookie of the owner's browser is of one address.
  const other = await world.insertUser(world.api.a, 'member');
  await world.signIn(other.email);
  const ofStranger = { cookie: world.codeCookie(other.email), body: { email } };
  await world.call('POST', '/console/session/code', ofStranger);
  await world.relay();
  expect(mails()).toBe(7);
});

test('a code of the operator signs in once, in any browser', async () => {
  const { database, clock, a } = world.api;
  const { email, userId } = await world.insertUser(a, 'member');
  const code = '1234567890123456';
  const expiresAtMs = clock.nowMs + 1_000;
  const kept = { accountId: a.accountId, userId, email, codeHash: hashSecret(code), expiresAtMs };
  await keepOperatorCode(database, kept, { actor: { type: 'system' } }, clock.nowMs);
  const stranger = await world.insertUser(a, 'member');
  expectProblem(await world.giveCode(stranger.email, code), 422, 'invalid_code');
  expect((await world.giveCode(email, code)).statusCode).toBe(204);
  expectProblem(await world.giveCode(email, code), 422, 'invalid_code');
});

test('an address that is no active user gets no mail, and the same answer', async () => {
  const { api } = world;
  const { email } = await world.insertUser(api.a, 'member');
  await sql`update users set status = 'deactivated' where email = ${email}`.execute(api.database);
  for (const address of [email, 'stranger@example.com'])
    expect(await world.mailedCode(address)).toBe('no code');
});

// Security: a row that is written for users alone shows them by the time of the answer.
test('a wrong code does the same write for a user and for an unknown address', async () => {
  const { api } = world;
  const { email } = await world.insertUser(api.a, 'member');
  for (const address of [email, 'a.stranger@example.com']) {
    const code = await world.mailedCode(address);
    expectProblem(await world.giveCode(address, otherThan(code)), 422, 'invalid_code');
    const { rows } = await sql<{ tries: number }>`
      select attempt_count as tries from sign_in_codes where email = ${address}`.execute(
      api.database,
    );
    expect(rows).toEqual([{ tries: 1 }]);
  }
});

test('wrong codes for a user are in the audit log once an hour', async () => {
  const { api } = world;
  const { email, userId } = await world.insertUser(api.b, 'member');
  await world.giveCode(email, '000000');
  await world.giveCode(email, '000001');
  await vi.waitFor(async () => {
    const { rows } = await sql<{ userId: number }>`
      select (changes->0->>'to')::int as "userId" from audit_logs
       where account_id = ${api.b.accountId} and object_type = 'failed_sign_in'`.execute(
      api.database,
    );
    expect(rows).toEqual([{ userId }]);
  }, 20_000);
});

test('one address may try a hundred codes an hour', async () => {
  const ip = world.newIp();
  const body = { email: 'guessed@example.com', code: '000000' };
  const give = () => world.call('POST', '/console/session', { body, ip });
  const answers = await Promise.all(Array.from({ length: 101 }, give));
  expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(1);
});

test('bad input names its field', async () => {
  for (const [body, field] of [
    [{ email: 'no address' }, 'email'],
    [{}, 'email'],
  ] as const) {
    const answer = await world.call('POST', '/console/session/code', { body });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(field);
  }
});
