/** Security: an invitation does not reserve an address, and does not show whose user it is. */
import { openUserSession } from '@sluice/database/users/session-openings';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import type { Tenant } from '../support/inserted-rows.ts';
import { startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { otherThan } from '../support/signup-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const usersOf = ({ accountId }: Tenant) => `/v1/accounts/${accountId}/users`;

/** By a token of the account. */
const invite = (tenant: Tenant, email: string) =>
  world.api.call('POST', usersOf(tenant), {
    key: tenant.token,
    body: { email, role: 'member', environment_ids: [tenant.environmentId] },
  });

async function nameOf({ accountId }: Tenant): Promise<string> {
  const { rows } = await sql<{ name: string }>`
    select name from accounts where account_id = ${accountId}`.execute(world.api.database);
  return rows[0]?.name ?? '';
}

const mailsTo = (email: string) => world.mails.filter(({ to }) => to === email);

async function accountOf(email: string): Promise<number> {
  const cookie = await world.signIn(email);
  return (await world.call('GET', '/console/me', { cookie })).json().account.id;
}

test('an invited person can still sign up for an account of their own', async () => {
  const email = world.newAddress();
  expect((await invite(world.api.a, email)).statusCode).toBe(200);
  await world.relay();
  const signedUp = await world.complete(email, await world.startedCode(email));
  expect(signedUp.statusCode).toBe(200);
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from users where email = ${email} and status = 'active'`.execute(
    world.api.database,
  );
  expect(rows.map(({ accountId }) => accountId)).toEqual([await accountOf(email)]);
  expect(rows[0]?.accountId).toBeGreaterThan(world.api.b.accountId);
});

// Security: any account can invite any address, so a later invitation must not take the person of an earlier one.
test('a person whom two accounts invite chooses the account with the mailed code', async () => {
  const { a, b, clock } = world.api;
  const email = world.newAddress();
  expect((await invite(b, email)).statusCode).toBe(200);
  clock.nowMs += 1_000;
  const latest = await invite(
    a,
    email.toUpperCase().replace(/@.*/, (end) => end.toLowerCase()),
  );
  expect(latest.statusCode).toBe(200);
  const code = await world.mailedCode(email);
  const names = [await nameOf(b), await nameOf(a)];
  // The relay mails the invitations and the code in any order.
  const mail = mailsTo(email).findLast(({ text }) => text.includes('code to sign in'));
  expect(mail?.text.replaceAll('=\r\n', '')).toContain(
    names.map((name) => JSON.stringify(name)).join(', '),
  );
  // The right code at the last try is still good for the choice.
  for (let wrong = 0; wrong < 2; wrong++)
    expectProblem(await world.giveCode(email, otherThan(code)), 422, 'invalid_code');
  const offered = await world.giveCode(email, code);
  expect(offered.json()).toEqual({
    accounts: [
      { id: b.accountId, name: names[0] },
      { id: a.accountId, name: names[1] },
    ],
  });
  expect(offered.headers['set-cookie']).toBeUndefined();
  expectProblem(await world.chooseAccount(email, code, 999_999), 422, 'invalid_code');
  expectProblem(
    await world.chooseAccount(email, otherThan(code), a.accountId),
    422,
    'invalid_code',
  );
  const chosen = await world.chooseAccount(email, code, a.accountId);
  expect(chosen.statusCode).toBe(204);
  clock.nowMs += 3_600_000;
  // Active there, for every later change of another account.
  const { id } = latest.json().user;
  expect(await accountOf(email)).toBe(a.accountId);
  await world.api.call('DELETE', `${usersOf(a)}/${id}`, { key: a.token });
  clock.nowMs += 3_600_000;
  expect(await accountOf(email)).toBe(b.accountId);
  // A removed user who is a user elsewhere may be invited again, which removes them from no account.
  expect((await invite(a, email)).json().user).toMatchObject({ id, status: 'invited' });
  clock.nowMs += 3_600_000;
  expect(await accountOf(email)).toBe(b.accountId);
});

// Otherwise any account with a provider of its own keeps a person out by an invitation.
test('a later invitation to an account that requires its identity provider does not hide an earlier one', async () => {
  const { a, b, clock, database } = world.api;
  const email = world.newAddress();
  expect((await invite(a, email)).statusCode).toBe(200);
  clock.nowMs += 1_000;
  expect((await invite(b, email)).statusCode).toBe(200);
  onTestFinished(async () => {
    await sql`delete from identity_providers where account_id = ${b.accountId}`.execute(database);
  });
  await sql`
    insert into identity_providers (account_id, issuer, client_id, is_required, admin_signed_in_at)
    values (${b.accountId}, 'https://id.example', 'sluice', true, now())`.execute(database);
  expect(await accountOf(email)).toBe(a.accountId);
});

test('an address that is a user’s of another account is answered as any other, and gets no mail', async () => {
  const { a, b } = world.api;
  const { email } = await world.insertUser(b, 'member');
  const unknown = world.newAddress();
  const answers = [await invite(a, email), await invite(a, unknown)];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  const told = answers.map((each) => {
    const { id, email: _own, ...user } = each.json().user;
    expect(id).toBeGreaterThan(0);
    return user;
  });
  expect(told[0]).toEqual(told[1]);
  await world.relay();
  expect([mailsTo(email).length, mailsTo(unknown).length]).toEqual([0, 1]);
  expect(await accountOf(email)).toBe(b.accountId);
  // An account does learn that an address is one of its own users'.
  expectProblem(await invite(b, email), 422, 'validation_failed');
});

test('an invited user whose address became another’s while the code was looked at is not let in', async () => {
  const { a, b, database, clock } = world.api;
  const { email } = await world.insertUser(b, 'member');
  const { id: userId } = (await invite(a, email)).json().user;
  const opened = await openUserSession(
    database,
    { userId, accountId: a.accountId, sessionHash: Buffer.alloc(32, 1), way: 'code' },
    { ipAddr: '127.0.0.1' },
    clock.nowMs,
  );
  expect(opened).toBe('no_user');
  const { rows } = await sql<{ status: string }>`
    select status from users where account_id = ${a.accountId} and user_id = ${userId}`.execute(
    database,
  );
  expect(rows).toEqual([{ status: 'invited' }]);
});
