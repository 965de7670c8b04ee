/** Whose answers are put off, and when. */
import { expect, test } from 'vitest';
import { AnswerPace } from '../../src/commit/answer-pace.ts';
import { createBatcher, event } from '../support/batcher-under-test.ts';

const LARGE = 1_000_000;

function openPace() {
  const standing = {
    nowMs: 0,
    unapplied: 0,
    added: 0,
    looks: 0,
    wakeUps: 0,
    isAway: false,
    countMs: 0,
  };
  const pace = new AnswerPace({
    sharePercent: 25,
    countUnapplied: () => {
      standing.looks++;
      standing.nowMs += standing.countMs;
      if (standing.isAway) return Promise.reject(new Error('away'));
      return Promise.resolve([standing.unapplied, 1]);
    },
    addedCount: () => standing.added,
    wake: () => standing.wakeUps++,
    monotonicNow: () => standing.nowMs,
  });
  const send = (...sizes: [environmentId: number, sizeBytes: number][]) =>
    pace.committed(new Map(sizes));
  return { pace, standing, send };
}

test('a workspace that sends most while the workers are behind waits for its answers; others do not', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  await pace.look();
  expect(pace.isSlowing).toBe(true);
  expect(pace.delayMsOf(1)).toBeGreaterThan(0);
  expect(pace.delayMsOf(2)).toBe(0);
});

test('the only one that sends is never slowed down, and the broker is not asked', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE]);
  standing.unapplied = 1_000;
  await pace.look();
  expect(pace.isSlowing).toBe(false);
  expect(standing.looks).toBe(0);
});

test('another one that has sent nothing for ten seconds wants nothing', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  standing.nowMs += 10_001;
  send([1, LARGE]);
  await pace.look();
  expect(pace.isSlowing).toBe(false);
});

test('while workers keep up, or apply nothing at all, answers come at once', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 1;
  await pace.look();
  expect(pace.isSlowing).toBe(false);

  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  standing.added += 20;
  await pace.look();
  expect(pace.isSlowing).toBe(true);
  // As many as were added, and no fewer.
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 30;
  standing.added += 20;
  await pace.look();
  expect(pace.isSlowing).toBe(false);
});

test('a workspace within its share, or of few bytes, is not slowed down', async () => {
  const { pace, standing, send } = openPace();
  send(...[1, 2, 3, 4, 5].map((id): [number, number] => [id, LARGE]));
  standing.unapplied = 10;
  await pace.look();
  expect(pace.isSlowing).toBe(false);
  const few = openPace();
  few.send([1, 50_000], [2, 100]);
  few.standing.unapplied = 10;
  await few.pace.look();
  expect(few.pace.isSlowing).toBe(false);
});

test('a process in which nobody sends much looks seldom, and is woken once by the first who does', async () => {
  const { pace, standing, send } = openPace();
  send([1, 1_000]);
  await pace.look();
  expect([pace.intervalMs, standing.wakeUps]).toEqual([1_000, 0]);
  send([1, LARGE]);
  send([1, LARGE]);
  expect([pace.intervalMs, standing.wakeUps]).toEqual([50, 1]);
  for (let looks = 0; looks < 50; looks++) await pace.look();
  expect(pace.intervalMs).toBe(1_000);
});

test('a broker that counts slowly is asked less often', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.countMs = 30;
  await pace.look();
  expect(pace.intervalMs).toBe(300);
});

test('a broker that does not answer has nobody wait', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  await pace.look();
  expect(pace.isSlowing).toBe(true);
  standing.isAway = true;
  for (let looks = 0; looks < 3; looks++) await pace.look();
  expect(pace.isSlowing).toBe(false);
});

test('an answer that is put off is given once, after those of others, and a drain waits for it', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  await pace.look();
  const batcher = createBatcher({ pace });
  const answered: number[] = [];
  const add = (environmentId: number) =>
    batcher.add([{ ...event('a', '1'), environmentId }], 10, () => answered.push(environmentId));
  for (const environmentId of [1, 2, 1, 2]) add(environmentId);
  await batcher.drain();
  expect(answered.slice(0, 2)).toEqual([2, 2]);
  expect(answered).toHaveLength(4);
});

test('a call that was not committed is told so at once', async () => {
  const { pace, standing, send } = openPace();
  send([1, LARGE], [2, 1_000]);
  standing.unapplied = 10;
  await pace.look();
  const batcher = createBatcher({ pace, commit: () => Promise.reject(new Error('away')) });
  const answered: string[] = [];
  batcher.add([event('a', '1')], 10, (outcome) => answered.push(outcome));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(answered).toEqual(['unavailable']);
});
