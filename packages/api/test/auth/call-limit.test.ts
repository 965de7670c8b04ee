import { expect, test } from 'vitest';
import { CallLimit } from '../../src/auth/call-limit.ts';

/** Processes that share one count, and how often it was asked. */
function processes(countMax: number, processCount = 1) {
  const clock = { nowMs: 600_000 };
  const asked: number[] = [];
  const rows = new Map<string, number>();
  const limits = Array.from(
    { length: processCount },
    () =>
      new CallLimit({
        name: 'token',
        countMax,
        windowMs: 60_000,
        now: () => clock.nowMs,
        takeCalls: async (subject, count, windowStartedAtMs) => {
          asked.push(count);
          const key = `${subject} ${windowStartedAtMs}`;
          rows.set(key, (rows.get(key) ?? 0) + count);
          return rows.get(key)!;
        },
      }),
  );
  return { clock, asked, limits, limit: limits[0]! };
}

test('each token has its own count, and the next minute a new one', async () => {
  const { clock, limit } = processes(2);
  expect(await limit.take(1)).toEqual({ remaining: 1, resetSeconds: 60, isExceeded: false });
  clock.nowMs += 30_500;
  expect(await limit.take(1)).toEqual({ remaining: 0, resetSeconds: 30, isExceeded: false });
  expect(await limit.take(1)).toEqual({ remaining: 0, resetSeconds: 30, isExceeded: true });
  expect(await limit.take(2)).toEqual({ remaining: 1, resetSeconds: 30, isExceeded: false });
  clock.nowMs += 29_499;
  expect((await limit.take(1)).isExceeded).toBe(true);
  clock.nowMs += 1;
  expect(await limit.take(1)).toEqual({ remaining: 1, resetSeconds: 60, isExceeded: false });
});

test('several processes together allow exactly the limit of calls', async () => {
  const { limits } = processes(500, 3);
  const standings = await Promise.all(
    Array.from({ length: 900 }, (_, index) => limits[index % 3]!.take(1)),
  );
  expect(standings.filter(({ isExceeded }) => !isExceeded)).toHaveLength(500);
});

test('a large limit is taken in blocks, and a process that stays idle holds back one of them', async () => {
  const { limits, asked } = processes(100_000, 2);
  await limits[1]!.take(1);
  let taken = 1;
  while (!(await limits[0]!.take(1)).isExceeded) taken += 1;
  expect(taken).toBe(100_000 - 99);
  expect(asked.length).toBeLessThanOrEqual(1_001);
});

test('calls during a pending count share the next count, and a used-up window is not counted again', async () => {
  const { limit, asked } = processes(40);
  const standings = await Promise.all(Array.from({ length: 100 }, () => limit.take(1)));
  expect(standings.filter(({ isExceeded }) => !isExceeded)).toHaveLength(40);
  expect(asked).toEqual([1, 99]);
  expect((await limit.take(1)).isExceeded).toBe(true);
  expect(asked).toHaveLength(2);
});

test('if the count fails, the call fails, and the next call counts again', async () => {
  let isAway = true;
  const limit = new CallLimit({
    name: 'token',
    countMax: 2,
    windowMs: 60_000,
    now: () => 0,
    takeCalls: (_subject, count) =>
      isAway ? Promise.reject(new Error('away')) : Promise.resolve(count),
  });
  await expect(limit.take(1)).rejects.toThrow('away');
  isAway = false;
  expect((await limit.take(1)).isExceeded).toBe(false);
});
