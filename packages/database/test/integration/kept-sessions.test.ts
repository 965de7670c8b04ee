import { expect, onTestFinished, test } from 'vitest';
import { judgeSessions, warnOfSharedSessions } from '../../src/kept-sessions.ts';
import { startSessionPooler } from '../../src/session-pooler.ts';
import { createTestDatabase } from '../../src/testing.ts';

const APPLICATION = { applicationName: 'sessions' };

async function startPooler(mode: 'transaction' | 'session'): Promise<string> {
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

test('a pooler that gives each transaction another session is told in one line, with what to do', async () => {
  const lines: string[] = [];
  const logger = { warn: (line: string) => void lines.push(line) };
  await warnOfSharedSessions({ ...APPLICATION, url: await startPooler('transaction') }, logger);
  expect(lines).toEqual([
    expect.stringMatching(/set pool_mode = session, or let DATABASE_URL lead/),
  ]);
});

test('a Postgres that does not answer is not taken for a pooler, and ends no start by this', async () => {
  const url = 'postgres://sluice@127.0.0.1:1/sluice';
  expect(await judgeSessions({ ...APPLICATION, url })).toBe('unknown');
});
