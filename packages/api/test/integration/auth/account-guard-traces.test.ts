/** Security: the traces of calls in the audit log, and a trace that cannot be written. */
import { sql } from 'kysely';
import { fastify } from 'fastify';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const IP = '198.51.100.4';
const USER_AGENT = 'a program';

/** The newest entry of the change that `ask` makes. */
async function entryBy(
  requestId: string,
  ask: (headers: Record<string, string>) => Promise<{ statusCode: number; body: string }>,
) {
  const answer = await ask({ 'user-agent': USER_AGENT, 'x-request-id': requestId });
  expect(answer.statusCode, answer.body).toBe(200);
  const { rows } = await sql<object>`
    select actor_type as actor, user_id::int as "userId", service_account_id::int as "serviceAccountId",
           credential_id::int as "credentialId", session_id::int as "sessionId", ip_addr as ip,
           user_agent as "userAgent", request_id as "requestId"
      from audit_logs where account_id = ${world.api.a.accountId}
     order by audit_log_id desc limit 1`.execute(world.api.database);
  return rows[0];
}

test('a change has its caller, credential, session, address and call in the audit log', async () => {
  const { api } = world;
  const url = `/v1/accounts/${api.a.accountId}`;
  let changeCount = 0;
  const body = () => ({ account: { website: `https://${++changeCount}.example` } });
  const sessionOf = async (cookie: string): Promise<number> =>
    (await world.call('GET', '/console/me', { cookie })).json().session.id;
  const { rows } = await sql<{ credentialId: number; serviceAccountId: number }>`
    select credential_id::int as "credentialId", service_account_id::int as "serviceAccountId"
      from api_credentials where secret_hash = sha256(${api.a.token}::bytea)`.execute(api.database);
  const call = { ip: IP, userAgent: USER_AGENT };
  const ofToken = { ...call, actor: 'service_account', userId: null, ...rows[0] };

  const byToken = await entryBy('by-token', (headers) =>
    api.app.inject({
      method: 'PUT',
      url,
      remoteAddress: IP,
      headers: {
        ...headers,
        authorization: `Bearer ${api.a.token}`,
        'content-type': 'application/json',
      },
      payload: JSON.stringify(body()),
    }),
  );
  expect(byToken).toEqual({ ...ofToken, sessionId: null, requestId: 'by-token' });

  const pasted = cookieOf(
    await world.call('POST', '/console/session', { body: { token: api.a.token } }),
  );
  const inItsSession = await entryBy('in-its-session', (headers) =>
    world.call('PUT', url, { cookie: pasted, body: body(), headers, ip: IP }),
  );
  expect(inItsSession).toEqual({
    ...ofToken,
    sessionId: await sessionOf(pasted),
    requestId: 'in-its-session',
  });

  const { email, userId } = await world.insertUser(api.a, 'account_admin');
  const cookie = await world.signIn(email);
  const byUser = await entryBy('by-user', (headers) =>
    world.call('PUT', url, { cookie, body: body(), headers, ip: IP }),
  );
  expect(byUser).toEqual({
    ...call,
    actor: 'user',
    userId,
    serviceAccountId: null,
    credentialId: null,
    sessionId: await sessionOf(cookie),
    requestId: 'by-user',
  });
});

test('the use of a token on another account is in the audit log of its own, also in the session that it opened', async () => {
  const { api } = world;
  const { a, b } = api;
  const tokens = ['sa_live_direct', 'sa_live_pasted'] as const;
  for (const token of tokens) await insertToken(api.database, a.accountId, token);
  const opened = await world.call('POST', '/console/session', { body: { token: tokens[1] } });
  const path = `/v1/accounts/${b.accountId}`;
  expectProblem(await api.call('GET', path, { key: tokens[0] }), 404, 'not_found');
  const cookie = cookieOf(opened);
  expectProblem(await world.call('GET', path, { cookie }), 404, 'not_found');
  const recorded = async () => {
    const { rows } = await sql<{ accountId: number; isDirect: boolean }>`
      select l.account_id::int as "accountId", secret_hash = sha256(${tokens[0]}::bytea) as "isDirect"
        from audit_logs l join api_credentials using (account_id, credential_id)
       where object_type = 'credential_misuse'`.execute(api.database);
    return new Set(rows.map((row) => JSON.stringify(row)));
  };
  // The answer does not wait for the record.
  const { accountId } = a;
  await expect
    .poll(recorded, { timeout: 60_000 })
    .toEqual(new Set([true, false].map((isDirect) => JSON.stringify({ accountId, isDirect }))));
});

test('the trace of a refused token has its end, without the blanks after it', async () => {
  const { api } = world;
  api.everyRefusal.length = 0;
  const headers = { authorization: 'Bearer sa_live_nobody  ' };
  const answer = await api.call('GET', `/v1/accounts/${api.a.accountId}`, { headers });
  expectProblem(answer, 401, 'unauthorized');
  expect(api.everyRefusal).toMatchObject([{ reason: 'not_in_force', hint: 'body' }]);
});

test('the use of a token on another account that cannot be recorded is logged, and its answer is the usual one', async () => {
  const lines: string[] = [];
  const { log } = fastify({
    logger: { level: 'warn', stream: { write: (line: string) => void lines.push(line) } },
  });
  const api = await startApi({ logger: log });
  onTestFinished(() => api.close());
  await sql`alter table call_counts rename to other_counts`.execute(api.database);
  const path = `/v1/accounts/${api.b.accountId}`;
  expectProblem(await api.call('GET', path, { key: api.a.token }), 404, 'not_found');
  // Its time is no part of the answer's.
  await expect.poll(() => lines.length, { timeout: 60_000 }).toBe(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    msg: expect.stringMatching(
      /could not be recorded in its audit log; check that Postgres answers/,
    ),
    error: expect.anything(),
    reqId: expect.any(String),
  });
});
