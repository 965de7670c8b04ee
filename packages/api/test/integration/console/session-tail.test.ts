/** A live tail that a session in the console has opened, over a real socket: it ends with the session. */
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openUserSession } from '@sluice/database/users/session-openings';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { newSessionCookie } from '../../../src/auth/session-cookie.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { openTailReader } from '../support/tail-reader.ts';

const WAIT = { timeout: 10_000, interval: 10 };

let api: ApiUnderTest;
let port: number;
beforeAll(async () => {
  api = await startApi({ tailDurationMsMax: 600_000 });
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
afterAll(() => api.close());

/** @returns the cookie of a session of a new user of workspace A. */
async function openSession(): Promise<string> {
  const { accountId, environmentId } = api.a;
  const { rows } = await sql<{ userId: number }>`
    with made as (
      insert into users (account_id, email, first_name, last_name, role, status)
      values (${accountId}, ${`${crypto.randomUUID()}@example.com`}, 'Ada', 'L', 'member', 'active') returning user_id
    ), joined as (
      insert into memberships (account_id, user_id, environment_id)
      select ${accountId}, user_id, ${environmentId} from made)
    select user_id as "userId" from made`.execute(api.database);
  const text = newSessionCookie(accountId);
  const session = {
    userId: rows[0]!.userId,
    accountId,
    sessionHash: hashSecret(text),
    way: 'code',
  } as const;
  expect(await openUserSession(api.database, session, { ipAddr: '127.0.0.1' }, 0)).toBe('complete');
  return `sluice-${port}=${text}`;
}

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

test('a tail ends once its user is no member of the account any more', async () => {
  const reader = await openTail(await openSession());
  await sql`update users set status = 'deactivated' where account_id = ${api.a.accountId}`.execute(
    api.database,
  );
  await vi.waitFor(() => expect(reader.isEnded).toBe(true), WAIT);
});
