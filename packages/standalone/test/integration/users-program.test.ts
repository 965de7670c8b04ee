/** `sluice users`: work of the operator for users by the database, for cases that the console cannot solve. */
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { runProgram, SLUICE } from './program-under-test.ts';

test('a user is invited with all workspaces, is signed out, and loses the second factor; the log names the actor', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const run = async (...words: string[]) => {
    const program = runProgram(SLUICE, ['--json', 'users', ...words], { DATABASE_URL: url });
    const code = await program.ended;
    return { code, errors: program.errors, output: program.output };
  };
  const invited = await run('invite', 'ada@example.com', '--account', String(DEMO.accountId));
  expect(invited).toMatchObject({ code: 0, errors: '' });
  const { user_id: userId } = JSON.parse(invited.output) as { user_id: number };
  const { rows } = await sql`
    select role, status, (select array_agg(environment_id) from memberships where user_id = u.user_id) as workspaces,
           (select count(*)::int from outbox where topic = 'user.invited') as mails
      from users u where user_id = ${userId}`.execute(database);
  expect(rows).toEqual([
    { role: 'account_admin', status: 'invited', workspaces: [DEMO.environmentId], mails: 1 },
  ]);

  await sql`
    insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
    select ${DEMO.accountId}, ${userId}, decode(to_hex(n), 'escape'), 'code', now() + interval '1 day', '127.0.0.1'
      from generate_series(1, 2) n`.execute(database);
  expect(JSON.parse((await run('end-sessions', 'ADA@example.com')).output)).toMatchObject({
    ended: 2,
  });
  await sql`
    insert into second_factors (account_id, user_id, secret, confirmed_at)
    values (${DEMO.accountId}, ${userId}, 'x', now())`.execute(database);
  await sql`update users set is_two_factor_enabled = true where user_id = ${userId}`.execute(
    database,
  );
  expect(JSON.parse((await run('reset', 'ada@example.com')).output)).toMatchObject({ reset: true });
  const coded = JSON.parse((await run('code', 'ada@example.com')).output) as { code: string };
  expect(coded.code).toMatch(/^\d{16}$/);
  const log = await sql<{ actor: string; action: string }>`
    select actor_type as actor, action from audit_logs
     where object_type = 'user' and object_id = ${String(userId)} order by audit_log_id`.execute(
    database,
  );
  expect(log.rows).toEqual([
    { actor: 'system', action: 'created' },
    { actor: 'system', action: 'updated' },
    { actor: 'system', action: 'updated' },
    { actor: 'system', action: 'updated' },
  ]);

  await sql`
    insert into identity_providers (account_id, issuer, client_id, is_required, admin_signed_in_at)
    values (${DEMO.accountId}, 'https://login.example.com', 'sluice', true, now())`.execute(
    database,
  );
  const lift = async () =>
    JSON.parse((await run('without-provider', 'ada@example.com')).output) as object;
  expect(await lift()).toMatchObject({ account_id: DEMO.accountId, lifted: true });
  expect(await lift()).toMatchObject({ lifted: false });
  const lifted = await sql<{ isRequired: boolean; entries: number }>`
    select is_required as "isRequired",
           (select count(*)::int from audit_logs
             where object_type = 'identity_provider' and actor_type = 'system') as entries
      from identity_providers`.execute(database);
  expect(lifted.rows).toEqual([{ isRequired: false, entries: 1 }]);

  const again = await run('invite', 'ada@example.com', '--account', String(DEMO.accountId));
  expect(again.code).toBe(2);
  expect(again.errors).toContain('is a user already');
  const elsewhere = await run('invite', 'owner2@demo.example', '--account', '1');
  expect(elsewhere).toMatchObject({ code: 2, errors: expect.stringContaining('of account 2') });
  expect((await run('reset', 'nobody@example.com')).errors).toContain('no user has the address');
  expect((await run('invite', 'no-address', '--account', '1')).code).toBe(2);
});
