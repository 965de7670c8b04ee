import { expect, onTestFinished, test } from 'vitest';
import {
  judgeSessions,
  requireKeptSessions,
  type SessionVerdict,
} from '../../../src/connection/kept-sessions.ts';
import { startSessionPooler } from '../../../src/testing/session-pooler.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const APPLICATION = { applicationName: 'sessions' };
/** Nearly the five seconds for a judgement: it takes them only if Postgres or this process stands still. */
const STANDSTILL_MS = 4_900;
const TRIES_MAX = 3;

async function startPooler(mode: Parameters<typeof startSessionPooler>[1]): Promise<string> {
  const pooler = await startSessionPooler((await createTestDatabase()).url, mode);
  onTestFinished(() => pooler.close());
  return pooler.url;
}

/** Tries again if there is no verdict because the time for it has passed. */
async function untilJudged<Outcome>(
  judged: () => Promise<Outcome>,
  isVerdict: (outcome: Outcome) => boolean,
): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const startedAtMs = performance.now();
    const outcome = await judged();
    const isInTime = performance.now() - startedAtMs < STANDSTILL_MS;
    if (isVerdict(outcome) || isInTime || tries === TRIES_MAX) return outcome;
  }
}

/** The verdict on a path that `open` makes for each try. */
const judge = (open: () => Promise<string>): Promise<SessionVerdict> =>
  untilJudged(
    async () => judgeSessions({ ...APPLICATION, url: await open() }),
    (verdict) => verdict !== 'unknown',
  );

test('without a pooler, and behind one that gives each connection a session of its own, sessions are kept', async () => {
  const urls = [(await createTestDatabase()).url, await startPooler('session')];
  for (const url of urls) expect(await judge(() => Promise.resolve(url))).toBe('kept');
});

test('a pooler that gives each transaction another session ends the start with advice', async () => {
  const url = await startPooler('transaction');
  const refusal = await untilJudged<unknown>(
    () =>
      requireKeptSessions({ ...APPLICATION, url }).then(
        () => 'started',
        (error: unknown) => error,
      ),
    (outcome) => outcome !== 'started',
  );
  expect(refusal).toEqual(
    expect.objectContaining({
      code: 'SESSIONS_SHARED',
      message: expect.stringMatching(/Set pool_mode = session, or let DATABASE_URL lead/),
    }),
  );
});

test('sessions that were lost once, as in a failover, and are kept afterwards end no start', async () => {
  // Two for each judgement.
  const openOnce = () =>
    startPooler((clientCount) => (clientCount > 2 ? 'session' : 'transaction'));
  const url = await openOnce();
  await requireKeptSessions({ ...APPLICATION, url });
  expect(await judge(openOnce)).toBe('shared');
});

test('a Postgres that does not answer is not taken for a pooler, and ends no start by this', async () => {
  const url = 'postgres://sluice@127.0.0.1:1/sluice';
  expect(await judgeSessions({ ...APPLICATION, url })).toBe('unknown');
  await requireKeptSessions({ ...APPLICATION, url });
});
