/** Security: the removal of a user beside a sign-in of the same user, of the owner, and the count of sessions that end. */
import { passSecondFactor } from '@sluice/database/users/second-factors';
import { findConsoleSession } from '@sluice/database/users/console-sessions';
import { endUserSessions, removeUser } from '@sluice/database/users/user-changes';
import type { Transaction } from '@sluice/database/connection/connection';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const { enrolled } = secondFactorsOf(() => world);
const BY_SYSTEM = { actor: { type: 'system' } } as const;

/** Holds the locks of `lock` until they are released, after `last`. */
async function hold(lock: (transaction: Transaction) => Promise<unknown>) {
  const held = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<(transaction: Transaction) => Promise<unknown>>();
  const ended = world.api.database.transaction().execute(async (transaction) => {
    await lock(transaction);
    held.resolve();
    await (
      await letGo.promise
    )(transaction);
  });
  await Promise.race([held.promise, ended]);
  return {
    letGo: async (last: (transaction: Transaction) => Promise<unknown> = async () => undefined) => {
      letGo.resolve(last);
      await ended;
    },
  };
}

const remove = (userId: number) =>
  removeUser(world.api.database, world.api.a.accountId, userId, BY_SYSTEM, world.api.clock.nowMs);

test('the removal of a user ends every session, also one that a sign-in opens meanwhile', async () => {
  const { accountId } = world.api.a;
  const { userId } = await world.insertUser(world.api.a, 'member');
  // As a sign-in does: the user's row, then the session.
  const signIn = await hold((transaction) =>
    sql`select from users where user_id = ${userId} for no key update`.execute(transaction),
  );
  const removed = remove(userId);
  await untilLockWaiters(world.api.database, 1);
  await signIn.letGo((transaction) =>
    sql`insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
        values (${accountId}, ${userId}, ${hashSecret('late')}, 'code', now() + interval '1 day', '127.0.0.1')`.execute(
      transaction,
    ),
  );
  expect(await removed).toMatchObject({ status: 'deactivated' });
  const { rows } = await sql`select 1 from console_sessions where user_id = ${userId}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([]);
});

test('a removal and a sign-in with two factors do not wait for each other for ever', async () => {
  const { database, clock, a } = world.api;
  const { email, userId } = await enrolled();
  const half = (await world.signIn(email)).split('=')[1]!;
  const session = await findConsoleSession(
    database,
    a.accountId,
    hashSecret(half),
    hashSecret('no demo'),
    true,
  );
  expect(session?.standing).toBe('needs_code');
  const factor = await hold((transaction) =>
    sql`select from second_factors where user_id = ${userId} for update`.execute(transaction),
  );
  const passed = passSecondFactor(
    database,
    { session: { ...session!, userId }, sessionHash: hashSecret('other'), idToken: null },
    { step: Number.MAX_SAFE_INTEGER },
    BY_SYSTEM,
    clock.nowMs,
  );
  await untilLockWaiters(world.api.database, 1);
  const removed = remove(userId);
  await untilLockWaiters(world.api.database, 2);
  await factor.letGo();
  expect(await passed).toBe('passed');
  expect(await removed).toMatchObject({ status: 'deactivated' });
  const { rows } = await sql`select 1 from console_sessions where user_id = ${userId}`.execute(
    database,
  );
  expect(rows).toEqual([]);
});

test('the owner is removed once another user is the owner, and not before', async () => {
  const { a } = world.api;
  const account = `/v1/accounts/${a.accountId}`;
  const owner = await world.insertUser(a, 'member');
  const admin = await world.insertUser(a, 'account_admin');
  const cookie = await world.signIn(admin.email);
  const ownedBy = (userId: number) =>
    world.call('PUT', account, { cookie, body: { account: { owner_user_id: userId } } });
  expect((await ownedBy(owner.userId)).statusCode).toBe(200);
  const path = `${account}/users/${owner.userId}`;
  const refused = await world.call('DELETE', path, { cookie });
  expectProblem(refused, 409, 'conflict');
  expect(refused.json().detail).toContain('owner');
  expect((await world.call('GET', account, { cookie })).json().account.owner_user_id).toBe(
    owner.userId,
  );
  expect((await ownedBy(admin.userId)).statusCode).toBe(200);
  expect((await world.call('DELETE', path, { cookie })).statusCode).toBe(204);
});

test('the sessions that are ended are counted while they are open', async () => {
  const { a, clock, database } = world.api;
  const admin = await world.signIn((await world.insertUser(a, 'account_admin')).email);
  const { email, userId } = await enrolled();
  clock.nowMs += 3_600_000;
  const idle = await world.signIn(email);
  const late = await world.signIn(email);
  await world.signIn(email);
  await sql`
    update console_sessions set last_seen_at = now() - interval '13 hours'
     where session_hash = ${hashSecret(idle.split('=')[1]!)}`.execute(database);
  // Incomplete, and ten minutes are over.
  await sql`
    update console_sessions set created_at = now() - interval '11 minutes'
     where session_hash = ${hashSecret(late.split('=')[1]!)}`.execute(database);
  const path = `/v1/accounts/${a.accountId}/users/${userId}/sessions`;
  const end = async () => (await world.call('DELETE', path, { cookie: admin })).json();
  // The one that set the factor up, and one that waits for a code.
  expect(await end()).toEqual({ ended: 2, programs_ended: 0 });
  expect(await end()).toEqual({ ended: 0, programs_ended: 0 });
});

// A sign-in holds the lock of the user's row until its session is there.
test('the end of all sessions waits for a sign-in in progress, and ends its session', async () => {
  const { a, database, clock } = world.api;
  const { userId } = await world.insertUser(a, 'member');
  let ended: ReturnType<typeof endUserSessions> | undefined;
  await database.transaction().execute(async (signIn) => {
    await sql`
      select from users where account_id = ${a.accountId} and user_id = ${userId}
         for no key update`.execute(signIn);
    await sql`
      insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
      values (${a.accountId}, ${userId}, ${Buffer.alloc(32, 9)}, 'code', now() + interval '1 day', '127.0.0.1')`.execute(
      signIn,
    );
    const origin = { actor: { type: 'system' } } as const;
    ended = endUserSessions(database, a.accountId, userId, origin, clock.nowMs);
    await untilLockWaiters(database, 1);
  });
  expect(await ended).toMatchObject({ sessionCount: 1 });
});
