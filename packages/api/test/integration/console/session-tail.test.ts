/**
 * Security: long calls in a session, over a real socket. They are a live tail and the upload of a file, and they end
 * with the session, and with the rights of its user.
 */
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openUserSession } from '@sluice/database/users/session-openings';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { newSessionCookie } from '../../../src/auth/session-cookie.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { CSV, FIELDS, form } from '../support/import-forms.ts';
import { openTailReader } from '../support/tail-reader.ts';

const WAIT = { timeout: 30_000, interval: 10 };

let api: ApiUnderTest;
let port: number;
beforeAll(async () => {
  api = await startApi({ tailDurationMsMax: 600_000 });
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
afterAll(() => api.close());

/** @returns the cookie of a session of a new user of workspace A, and the user. */
async function openSessionOf(
  role: 'member' | 'account_admin',
): Promise<{ cookie: string; userId: number }> {
  const { accountId, environmentId } = api.a;
  const { rows } = await sql<{ userId: number }>`
    with made as (
      insert into users (account_id, email, first_name, last_name, role, status)
      values (${accountId}, ${`${crypto.randomUUID()}@example.com`}, 'Ada', 'L', ${role}, 'active') returning user_id
    ), joined as (
      insert into memberships (account_id, user_id, environment_id)
      select ${accountId}, user_id, ${environmentId} from made)
    select user_id as "userId" from made`.execute(api.database);
  const text = newSessionCookie(accountId);
  const { userId } = rows[0]!;
  const session = {
    userId,
    accountId,
    sessionHash: hashSecret(text),
    way: 'code',
  } as const;
  expect(await openUserSession(api.database, session, { ipAddr: '127.0.0.1' }, 0)).toBe('complete');
  return { cookie: `sluice-${port}=${text}`, userId };
}

const openSession = async (): Promise<string> => (await openSessionOf('member')).cookie;

const openTail = (cookie: string) =>
  openTailReader({
    port,
    query: '',
    headers: { cookie, 'x-sluice-workspace': String(api.a.environmentId) },
  });

test('a tail ends within a second after its session was ended, and no other can be opened', async () => {
  const cookie = await openSession();
  const other = await openTail(await openSession());
  const reader = await openTail(cookie);
  expect(reader.answer.statusCode).toBe(200);
  const origin = `http://127.0.0.1:${port}`;
  const ended = await fetch(`${origin}/console/session`, {
    method: 'DELETE',
    headers: { cookie, origin },
  });
  expect(ended.status).toBe(204);
  await vi.waitFor(() => expect(reader.isEnded).toBe(true), WAIT);
  expect((await openTail(cookie)).answer.statusCode).toBe(401);
  expect(other.isEnded).toBe(false);
  other.answer.destroy();
});

test('a tail ends once its workspace is taken from its user, who stays in the account', async () => {
  const { cookie, userId } = await openSessionOf('member');
  const other = await openTail(await openSession());
  const reader = await openTail(cookie);
  expect(reader.answer.statusCode).toBe(200);
  await sql`delete from memberships where user_id = ${userId}`.execute(api.database);
  await vi.waitFor(() => expect(reader.isEnded).toBe(true), WAIT);
  expect((await openTail(cookie)).answer.statusCode).toBe(403);
  expect(other.isEnded).toBe(false);
  other.answer.destroy();
});

const importCount = async (): Promise<number> => {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from imports`.execute(
    api.database,
  );
  return rows[0]!.count;
};

/** The last bytes are sent once `meanwhile` has been done, in the middle of the file. */
async function upload(
  cookie: string,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number; isKept: boolean }> {
  const before = await importCount();
  const file = Buffer.concat([Buffer.from(CSV), Buffer.alloc(3_000_000, 'a')]);
  const { payload, headers } = await form(FIELDS, file);
  const socket = connect(port, '127.0.0.1');
  // A refused file may be cut with a reset, after its answer.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const host = `127.0.0.1:${port}`;
  const head = [
    'POST /v1/imports HTTP/1.1',
    `Host: ${host}`,
    `Origin: http://${host}`,
    `Cookie: ${cookie}`,
    `X-Sluice-Workspace: ${api.a.environmentId}`,
    `Content-Type: ${headers['content-type']}`,
    `Content-Length: ${payload.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(payload.subarray(0, 2_500_000));
  await vi.waitFor(async () => expect(await importCount()).toBe(before + 1), WAIT);
  await meanwhile();
  socket.write(payload.subarray(2_500_000));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  const status = Number(answer.toString().split(' ')[1]);
  if (status !== 200) await vi.waitFor(async () => expect(await importCount()).toBe(before), WAIT);
  socket.destroy();
  return { status, isKept: (await importCount()) > before };
}

test('an upload is refused and discarded once its user may no longer import there', async () => {
  const changes: Record<string, (userId: number) => Promise<unknown>> = {
    'of another role': (userId) =>
      sql`update users set role = 'member' where user_id = ${userId}`.execute(api.database),
    'without the workspace': (userId) =>
      sql`delete from memberships where user_id = ${userId}`.execute(api.database),
    'signed out': (userId) =>
      sql`delete from console_sessions where user_id = ${userId}`.execute(api.database),
  };
  for (const [name, change] of Object.entries(changes)) {
    const { cookie, userId } = await openSessionOf('account_admin');
    const outcome = await upload(cookie, () => change(userId));
    expect(outcome, name).toEqual({ status: 401, isKept: false });
  }
  const { cookie } = await openSessionOf('account_admin');
  expect(await upload(cookie, async () => undefined)).toEqual({ status: 200, isKept: true });
});

test('a tail ends once its user is no member of the account any more', async () => {
  const reader = await openTail(await openSession());
  await sql`update users set status = 'deactivated' where account_id = ${api.a.accountId}`.execute(
    api.database,
  );
  await vi.waitFor(() => expect(reader.isEnded).toBe(true), WAIT);
});
