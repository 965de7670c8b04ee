/** The demo's button: one click, on this machine alone, for as long as the demo is open. */
import { DEMO, revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { FORWARDING_HEADERS } from '@sluice/domain/accounts/demo-calls';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sessionSubject } from '../../../src/auth/session-door.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertExport } from '../support/audit-log-world.ts';
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

  for (const name of FORWARDING_HEADERS) {
    const forwarded = { [name]: '203.0.113.9' };
    expectProblem(await openDemo(forwarded), 403, 'forbidden');
    const answer = await world.call('GET', '/console/me', { cookie, headers: forwarded });
    expectProblem(answer, 403, 'forbidden');
  }

  await revokeDemoCredentials(database);
  expectProblem(await world.call('GET', '/console/me', { cookie }), 401, 'unauthorized');
  expectProblem(await openDemo(), 403, 'forbidden');
});

test('a visitor of the demo sees and ends only their own session', async () => {
  await seedDemoWorkspace(world.api.database);
  const [one, other] = [cookieOf(await openDemo()), cookieOf(await openDemo())];
  const idsOf = async (cookie: string): Promise<number[]> =>
    (await world.call('GET', '/console/sessions', { cookie }))
      .json()
      .sessions.map((each: { id: number }) => each.id);
  const [ofOne, ofOther] = [await idsOf(one), await idsOf(other)];
  expect([ofOne.length, ofOther.length]).toEqual([1, 1]);
  expect(ofOne).not.toEqual(ofOther);
  const end = (id: number | undefined) =>
    world.call('DELETE', `/console/sessions/${id}`, { cookie: one });
  expectProblem(await end(ofOther[0]), 404, 'not_found');
  expect(await idsOf(other)).toEqual(ofOther);
  expect((await end(ofOne[0])).statusCode).toBe(204);
});

test('the audit log of the demo shows the address of no visitor: of a session, a public token, a download', async () => {
  const { api } = world;
  await seedDemoWorkspace(api.database);
  const cookie = cookieOf(await openDemo());
  const path = '/v1/accounts/1/api_credentials';
  const body = { type: 'service_account', name: 'Own', role: 'account_admin' };
  const made = await world.call('POST', path, { cookie, body });
  const demo = { ...api.a, accountId: 1, key: DEMO.appKey };
  for (const token of [DEMO.accountToken, made.json().secret as string]) {
    const { link } = await insertExport(api, { ...demo, token });
    const fetched = await world.call('GET', `/v1/audit_log_exports/${link}`);
    expect(fetched.statusCode).toBe(200);
  }
  const named = await api.call('PUT', '/v1/feeds/public', {
    key: DEMO.appKey,
    body: { events: ['event'] },
  });
  expect(named.statusCode, named.body).toBe(200);
  await world.call('DELETE', '/console/session', { cookie });

  const { rows } = await sql<{ kind: string; shown: number }>`
    select object_type || ' ' || action as kind,
           (count(*) filter (where ip_addr is not null or user_agent is not null))::int as shown
      from audit_logs where account_id = 1 group by 1`.execute(api.database);
  expect(rows.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining([
      'api_credential created',
      'audit_log_export created',
      'audit_log_export updated',
      'console_session created',
      'feed created',
    ]),
  );
  expect(rows.filter(({ shown }) => shown > 0)).toEqual([]);
});

test('the demo has 50 open sessions of an address at most, counts the calls of a network together, and opens for it 300 times an hour', async () => {
  const { database } = world.api;
  await seedDemoWorkspace(database);
  await sql`
    insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
    select 1, 1, decode(lpad(to_hex(n), 64, '0'), 'hex'), 'demo', now() + interval '1 day',
           case when n <= 60 then '198.51.100.7' else '198.51.100.8' end
      from generate_series(1, 100) n`.execute(database);
  const opened = await world.call('POST', '/console/session', {
    body: { demo: true },
    ip: '198.51.100.7',
  });
  const { rows } = await sql<{ ip: string; count: number }>`
    select ip_addr as ip, count(*)::int as count from console_sessions
     where way = 'demo' and ip_addr like '198.51.100.%' group by 1 order by 1`.execute(database);
  // The sessions of another visitor stay.
  expect(rows).toEqual([
    { ip: '198.51.100.7', count: 50 },
    { ip: '198.51.100.8', count: 40 },
  ]);
  const me = await world.call('GET', '/console/me', { cookie: cookieOf(opened) });
  expect(me.statusCode).toBe(200);

  const subjectOf = (sessionId: number, from: string) =>
    sessionSubject({ way: 'demo', credentialId: null, sessionId }, { ip: from });
  expect(subjectOf(1, '198.51.100.7')).toBe(subjectOf(2, '198.51.100.7'));
  expect(subjectOf(1, '198.51.100.7')).not.toBe(subjectOf(2, '198.51.100.8'));

  const ip = world.newIp();
  const open = () => world.call('POST', '/console/session', { body: { demo: true }, ip });
  const statuses: number[] = [];
  for (let count = 0; count < 301; count++) statuses.push((await open()).statusCode);
  expect(statuses.filter((each) => each === 429)).toHaveLength(1);
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
