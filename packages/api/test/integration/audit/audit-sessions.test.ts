/** The session of the console in audit entries (`account-conventions.md` §4.4). */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { checkAuditChain } from '@sluice/database/verify/verify-audit-chains';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { createDeviceLogins } from '../console/device-login/device-logins.ts';
import { insertExport } from '../support/audit-log-world.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const { give, codeOf, enrolled } = secondFactorsOf(() => world);

/** The newest first. */
async function entriesOf(accountId: number): Promise<{ what: string; sessionId: number | null }[]> {
  const { rows } = await sql<{ what: string; sessionId: number | null }>`
    select action || ' ' || object_type as what, session_id::int as "sessionId"
      from audit_logs where account_id = ${accountId} order by audit_log_id desc`.execute(
    world.api.database,
  );
  return rows;
}

const sessionOf = async (cookie: string): Promise<number> =>
  (await world.call('GET', '/console/me', { cookie })).json().session.id;

const webhook = { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] };

test('each change in a session has the number of the session, from the sign-in to the sign-out', async () => {
  const { api } = world;
  const { accountId, environmentId } = api.b;
  const { email } = await world.insertUser(api.b, 'account_admin');
  const cookie = await world.signIn(email);
  const sessionId = await sessionOf(cookie);
  const account = `/v1/accounts/${accountId}`;
  const changes = [
    world.call('POST', '/v1/reporting_webhooks', {
      cookie,
      workspace: environmentId,
      body: webhook,
    }),
    world.call('PUT', account, { cookie, body: { account: { website: 'https://a.example' } } }),
    world.call('POST', `${account}/audit_logs/export`, { cookie, body: {} }),
  ];
  for (const { statusCode, body } of await Promise.all(changes)) expect(statusCode, body).toBe(200);
  const { export_id: id } = await insertExport(api, api.b);
  const polled = await world.call('GET', `${account}/audit_logs/exports/${id}`, { cookie });
  const { pathname } = new URL(polled.json().export.download_url);
  expect((await api.app.inject({ method: 'GET', url: pathname })).statusCode).toBe(200);
  expect((await world.call('DELETE', '/console/session', { cookie })).statusCode).toBe(204);

  const entries = await entriesOf(accountId);
  const inSession = entries.filter((each) => each.sessionId === sessionId).map(({ what }) => what);
  expect(inSession.toSorted()).toEqual([
    'created audit_log_export',
    'created console_session',
    'created reporting_webhook',
    'deleted console_session',
    'updated account',
    'updated audit_log_export',
  ]);
  // The order by the token.
  expect(entries.filter((each) => each.sessionId === null).map(({ what }) => what)).toEqual([
    'created audit_log_export',
  ]);

  const listed = await api.call('GET', `${account}/audit_logs?session_id=${sessionId}`, {
    key: api.b.token,
  });
  const ids = listed.json().audit_logs.map((entry: { id: number }) => entry.id) as number[];
  expect(ids).toHaveLength(inSession.length);
  for (const entryId of ids) {
    const shown = await api.call('GET', `${account}/audit_log/${entryId}`, { key: api.b.token });
    expect(shown.json().audit_log.context).toMatchObject({ session_id: sessionId });
  }
});

test('a change by a key or a token has no session; one in the session of a pasted token has it', async () => {
  const { api } = world;
  const { accountId, environmentId, token, key } = api.a;
  const account = `/v1/accounts/${accountId}`;
  await api.call('POST', '/v1/reporting_webhooks', { key, body: webhook });
  await api.call('PUT', account, {
    key: token,
    body: { account: { website: 'https://b.example' } },
  });
  expect(await entriesOf(accountId)).toMatchObject([
    { what: 'updated account', sessionId: null },
    { what: 'created reporting_webhook', sessionId: null },
  ]);
  const cookie = cookieOf(await world.call('POST', '/console/session', { body: { token } }));
  const sessionId = await sessionOf(cookie);
  await world.call('POST', '/v1/reporting_webhooks', {
    cookie,
    workspace: environmentId,
    body: webhook,
  });
  expect((await entriesOf(accountId)).slice(0, 2)).toEqual([
    { what: 'created reporting_webhook', sessionId },
    { what: 'created console_session', sessionId },
  ]);
});

test('a second factor and a program that is let in have the session of their user', async () => {
  const { email, secret, cookie: first } = await enrolled();
  const setUpIn = await sessionOf(first);
  const { accountId } = world.api.a;
  expect(await entriesOf(accountId)).toContainEqual({ what: 'updated user', sessionId: setUpIn });
  const answer = await give(await world.signIn(email), { code: codeOf(secret) });
  const second = await sessionOf(cookieOf(answer));
  expect((await entriesOf(accountId))[0]).toEqual({
    what: 'created console_session',
    sessionId: second,
  });

  const logins = await createDeviceLogins(world);
  const sessionId = await sessionOf(logins.cookie);
  await logins.letIn();
  expect((await entriesOf(logins.tenant.accountId)).slice(0, 2)).toEqual([
    { what: 'created api_credential', sessionId },
    { what: 'created api_credential', sessionId },
  ]);
});

test('security: the number of a session does not grant access', async () => {
  const { email } = await world.insertUser(world.api.a, 'account_admin');
  const cookie = await world.signIn(email);
  const sessionId = await sessionOf(cookie);
  const [name = '', value = ''] = cookie.split('=');
  for (const guess of [`${sessionId}`, `${value.split('.')[0]}.${sessionId}`])
    expectProblem(
      await world.call('GET', '/console/me', { cookie: `${name}=${guess}` }),
      401,
      'unauthorized',
    );
});

test('I37: a session that is put into an entry, or taken out of it, breaks the chain', async () => {
  const { api } = world;
  const { accountId, token } = api.b;
  const account = `/v1/accounts/${accountId}`;
  const { email } = await world.insertUser(api.b, 'account_admin');
  const cookie = await world.signIn(email);
  await world.call('PUT', account, { cookie, body: { account: { website: 'https://c.example' } } });
  await api.call('PUT', account, {
    key: token,
    body: { account: { website: 'https://d.example' } },
  });
  const check = async (database: DatabaseOrTransaction) =>
    (await checkAuditChain(database, accountId, () => {})).findings;
  expect(await check(api.database)).toEqual([]);
  const undone = new Error('undone');
  for (const [change, wrong] of [
    [sql`set session_id = null where session_id is not null`, 'in a session'],
    [sql`set session_id = 1 where session_id is null`, 'by a token'],
  ] as const)
    await expect(
      api.database.transaction().execute(async (transaction) => {
        await sql`alter table audit_logs disable trigger audit_logs_append_only`.execute(
          transaction,
        );
        const { numAffectedRows } = await sql`
          update audit_logs ${change} and account_id = ${accountId}`.execute(transaction);
        const findings = await check(transaction);
        expect(numAffectedRows, wrong).toBeGreaterThan(0n);
        expect(findings, wrong).toHaveLength(Number(numAffectedRows));
        throw undone;
      }),
    ).rejects.toBe(undone);
});
