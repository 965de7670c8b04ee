import { expect, onTestFinished, test } from 'vitest';
import { judgeSessions, requireKeptSessions } from '../../../src/connection/kept-sessions.ts';
import { startSessionPooler } from '../../../src/testing/session-pooler.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const APPLICATION = { applicationName: 'sessions' };

async function startPooler(mode: Parameters<typeof startSessionPooler>[1]): Promise<string> {
  const pooler = await startSessionPooler((await createTestDatabase()).url, mode);
  onTestFinished(() => pooler.close());
  return pooler.url;
}

test('without a pooler, and behind one that gives each connection a session of its own, sessions are kept', async () => {
  expect(await judgeSessions({ ...APPLICATION, url: (await createTestDatabase()).url })).toBe(
    'kept',
  );
  expect(await judgeSessions({ ...APPLICATION, url: await startPooler('session') })).toBe('kept');
});

test('a pooler that gives each transaction another session ends the start with advice', async () => {
  const url = await startPooler('transaction');
  await expect(requireKeptSessions({ ...APPLICATION, url })).rejects.toEqual(
    expect.objectContaining({
      code: 'SESSIONS_SHARED',
      message: expect.stringMatching(/Set pool_mode = session, or let DATABASE_URL lead/),
    }),
  );
});

test('sessions that were lost once, as in a failover, and are kept afterwards end no start', async () => {
  // Two for each judgement.
  const url = await startPooler((clientCount) => (clientCount > 2 ? 'session' : 'transaction'));
  await requireKeptSessions({ ...APPLICATION, url });
  const once = await startPooler((clientCount) => (clientCount > 2 ? 'session' : 'transaction'));
  expect(await judgeSessions({ ...APPLICATION, url: once })).toBe('shared');
});

test('a Postgres that does not answer is not taken for a pooler, and ends no start by this', async () => {
  const url = 'postgres://sluice@127.0.0.1:1/sluice';
  expect(await judgeSessions({ ...APPLICATION, url })).toBe('unknown');
  await requireKeptSessions({ ...APPLICATION, url });
});
