/** Limits of calls hold for two real API processes together. */
import { clearCallCounts, takeCalls } from '@sluice/database/changes/call-counts';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { createTestDatabase, type TestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { takeCallsTogetherIn } from '../../../src/auth/call-limit.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { startProcess } from '../support/process-under-test.ts';

let testDatabase: TestDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
});

const startTwo = async (settings: Record<string, string>) => {
  const both = [startProcess(testDatabase, settings), startProcess(testDatabase, settings)];
  return Promise.all(both.map((each) => each.ready()));
};

/** Calls that are spread over two windows are limited in each: then all of them are made again. */
async function withinOne<Result>(
  windowMs: number,
  makeCalls: () => Promise<Result>,
): Promise<Result> {
  const windowNow = (): number => Math.floor(Date.now() / windowMs);
  for (;;) {
    const window = windowNow();
    const result = await makeCalls();
    if (windowNow() === window) return result;
  }
}

/** Two processes start, on a machine that others use too. */
const PROCESSES_TIMEOUT_MS = 180_000;

test(
  'a token and an address have one limit across all processes',
  { timeout: PROCESSES_TIMEOUT_MS },
  async () => {
    const { database } = testDatabase;
    const { rows } = await sql<{ id: number }>`
    insert into accounts (name) values ('A') returning account_id::int as id`.execute(database);
    const accountId = rows[0]!.id;
    const urls = await startTwo({ API_RATE_LIMIT_PER_MINUTE: '20' });

    const read = async (url: string, token: string) => {
      const answer = await fetch(`${url}/v1/accounts/${accountId}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.arrayBuffer();
      return answer;
    };
    const readAll = (token: string) =>
      Promise.all(Array.from({ length: 50 }, (_, index) => read(urls[index % 2]!, token)));
    let tokenCount = 0;
    const answers = await withinOne(60_000, async () => {
      const token = `sa_live_limited_${++tokenCount}`;
      await insertToken(database, accountId, token);
      return readAll(token);
    });
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(refused).toHaveLength(30);
    // Each process refused some.
    for (const url of urls) expect(refused.some((answer) => answer.url.startsWith(url))).toBe(true);
    for (const { headers } of refused) {
      expect(headers.get('ratelimit-limit')).toBe('20');
      expect(headers.get('ratelimit-remaining')).toBe('0');
      expect(headers.get('retry-after')).toBe(headers.get('ratelimit-reset'));
    }

    const apply = (url: string) =>
      fetch(`${url}/v1/account_signup/partner_application`, { method: 'POST' }).then(
        ({ status }) => status,
      );
    const statuses = await withinOne(3_600_000, async () => {
      await sql`delete from call_counts`.execute(database);
      const answered: number[] = [];
      for (let index = 0; index < 34; index += 1) answered.push(await apply(urls[index % 2]!));
      return answered;
    });
    expect(statuses.filter((status) => status === 200)).toHaveLength(30);
    expect(statuses.slice(30)).toEqual([429, 429, 429, 429]);
  },
);

test(
  '60 wrong tokens a minute of an address are answered 401 across all processes, and right ones pass at each',
  { timeout: PROCESSES_TIMEOUT_MS },
  async () => {
    const { database } = testDatabase;
    const { rows } = await sql<{ id: number }>`
    insert into accounts (name) values ('Guessed') returning account_id::int as id`.execute(
      database,
    );
    const accountId = rows[0]!.id;
    await insertToken(database, accountId, 'sa_live_right');
    const urls = await startTwo({});
    const statusOf = async (url: string, token: string): Promise<number> => {
      const answer = await fetch(`${url}/v1/accounts/${accountId}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const { wrong, right } = await withinOne(60_000, async () => {
      await sql`delete from call_counts`.execute(database);
      const guesses = Array.from({ length: 100 }, (_, index) =>
        statusOf(urls[index % 2]!, `sa_live_wrong_${index}`),
      );
      return {
        wrong: await Promise.all(guesses),
        right: await Promise.all(urls.map((url) => statusOf(url, 'sa_live_right'))),
      };
    });
    expect(wrong.filter((status) => status === 401)).toHaveLength(60);
    expect(wrong.filter((status) => status === 429)).toHaveLength(40);
    expect(right).toEqual([200, 200]);
  },
);

test('the calls of many subjects are taken by one statement, each in its own count', async () => {
  const { database } = testDatabase;
  const take = takeCallsTogetherIn(database, DAY_MS);
  const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  let taken: readonly number[] = [];
  const sent = await statementsSentBy(async () => {
    taken = await Promise.all(
      Array.from({ length: 200 }, (_, n) => take(`together ${n % 199}`, 1 + n, todayMs, DAY_MS)),
    );
  });
  expect(sent).toHaveLength(1);
  expect(taken).toEqual([
    ...Array.from({ length: 199 }, (_, n) => 1 + n),
    // The second calls of the first subject.
    1 + 200,
  ]);
  expect(await takeCalls(database, 'together 7', 1, todayMs, DAY_MS)).toBe(9);
});

/** So long that it is in force until the end of a test, on any machine. */
const DAY_MS = 86_400_000;

test('a process whose clock is behind counts in the newer window', async () => {
  const { database } = testDatabase;
  const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const take = (count: number, windowMs: number) =>
    takeCalls(database, 'a', count, windowMs, DAY_MS);
  expect(await take(5, todayMs - DAY_MS)).toBe(5);
  expect(await take(1, todayMs)).toBe(1);
  expect(await take(1, todayMs - DAY_MS)).toBe(2);
});

// Each window lasted as long as the clock had been ahead.
test.each([
  ['was an hour ahead', 3_600_000, 0],
  ['is set an hour back', -3_600_000, -7_200_000],
])(
  'the calls of a process that %s count in the present window alone',
  async (subject, fromMs, toMs) => {
    const { database } = testDatabase;
    const secondMs = Math.floor(Date.now() / 1_000) * 1_000;
    const take = (count: number, windowMs: number) =>
      takeCalls(database, subject, count, windowMs, 1_000);
    expect(await take(5, secondMs + fromMs)).toBe(5);
    expect(await take(1, secondMs + toMs)).toBe(1);
    expect(await take(1, secondMs + toMs)).toBe(2);
    expect(await take(1, secondMs + toMs + 1_000)).toBe(1);
  },
);

test('counts of windows that are over are cleared', async () => {
  const { database } = testDatabase;
  await takeCalls(database, 'old', 1, 1_000, 1_000);
  await takeCalls(database, 'new', 1, 2_000, 1_000);
  await clearCallCounts(database, 2_000, 10);
  const { rows } =
    await sql`select subject from call_counts where subject in ('old', 'new')`.execute(database);
  expect(rows).toEqual([{ subject: 'new' }]);
});
