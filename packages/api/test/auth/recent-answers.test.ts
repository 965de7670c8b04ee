import { expect, test } from 'vitest';
import { RecentAnswers } from '../../src/auth/recent-answers.ts';

function start(countMax = 100) {
  const clock = { nowMs: 0 };
  const asked: string[] = [];
  const answers = new RecentAnswers<string>({
    ttlMs: 1000,
    countMax,
    monotonicNow: () => clock.nowMs,
  });
  const stored = { answer: 'yes' as string | undefined };
  const get = (key: string) =>
    answers.get(key, async () => {
      asked.push(key);
      return stored.answer;
    });
  return { clock, asked, answers, stored, get };
}

test('an answer is used again for as long as it is recent, not longer', async () => {
  const { clock, asked, get } = start();
  await get('a');
  clock.nowMs = 999;
  await get('a');
  expect(asked).toEqual(['a']);
  clock.nowMs = 1000;
  await get('a');
  expect(asked).toEqual(['a', 'a']);
});

test('the age of an answer counts from its request, because the answer may miss later changes', async () => {
  const { clock, answers } = start();
  const slow = Promise.withResolvers<string>();
  const first = answers.get('a', () => slow.promise);
  clock.nowMs = 1500;
  slow.resolve('old');
  expect(await first).toBe('old');
  expect(await answers.get('a', async () => 'new')).toBe('new');
});

test('concurrent requests for one key share one lookup', async () => {
  const { asked, get } = start();
  expect(await Promise.all([get('a'), get('a'), get('a')])).toEqual(['yes', 'yes', 'yes']);
  expect(asked).toEqual(['a']);
});

test('the cache does not keep a missing value', async () => {
  const { asked, stored, get } = start();
  stored.answer = undefined;
  expect(await get('a')).toBeUndefined();
  stored.answer = 'yes';
  expect(await get('a')).toBe('yes');
  expect(asked).toEqual(['a', 'a']);
});

test('a failure reaches every waiting caller, and the cache does not keep it', async () => {
  const { answers, get } = start();
  const fail = () => answers.get('a', () => Promise.reject(new Error('away')));
  const outcomes = await Promise.allSettled([fail(), fail()]);
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected']);
  expect(await get('a')).toBe('yes');
});

test('it holds a bounded number of answers', async () => {
  const { asked, get } = start(2);
  for (const key of ['a', 'b', 'c', 'a']) await get(key);
  expect(asked).toEqual(['a', 'b', 'c', 'a']);
});
