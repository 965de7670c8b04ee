/** A start's questions while its sessions are checked. A pooler that shares sessions is named first. */
import { expect, onTestFinished, test } from 'vitest';
import { joinBesideKeptSessions } from '../../../src/schema/beside-kept-sessions.ts';
import { startSessionPooler } from '../../../src/testing/session-pooler.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const APPLICATION = { applicationName: 'sessions' };
/** A judgement may be missing if Postgres or this process stands still for five seconds. */
const TRIES_MAX = 3;

test('the questions begin with the check, and their result or error is the one of the start', async () => {
  const session = { ...APPLICATION, url: (await createTestDatabase()).url };
  let isBegun = false;
  const joined = joinBesideKeptSessions(session, async () => {
    isBegun = true;
    return 'joined';
  });
  expect(isBegun).toBe(true);
  expect(await joined).toBe('joined');
  const failed = joinBesideKeptSessions(session, () => Promise.reject(new Error('behind')));
  await expect(failed).rejects.toThrow('behind');
});

test('behind a pooler that shares sessions the start ends for that reason, not for a failed question', async () => {
  const pooler = await startSessionPooler((await createTestDatabase()).url, 'transaction');
  onTestFinished(() => pooler.close());
  const session = { ...APPLICATION, url: pooler.url };
  const join = () => Promise.reject(new Error('prepared statement does not exist'));
  for (let tries = 1; ; tries++) {
    const refusal: unknown = await joinBesideKeptSessions(session, join).catch(
      (error: unknown) => error,
    );
    if ((refusal as { code?: string }).code === undefined && tries < TRIES_MAX) continue;
    expect(refusal).toEqual(expect.objectContaining({ code: 'SESSIONS_SHARED' }));
    return;
  }
});
