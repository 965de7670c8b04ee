/** Days of usage are closed when their time has come: all accounts, in order, by any worker that the schedule wakes. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Database } from '@sluice/database/connection/connection';
import { createLogger } from '@sluice/platform/process/logger';
import { migrateQueues } from '@sluice/platform/queue/queue';
import {
  openTaskQueue,
  startTaskWorker,
  USAGE_TASKS,
  type TaskQueue,
} from '@sluice/platform/consumers/queue-tasks';
import { connectProducer } from '@sluice/platform/redis/redis';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { closeUsage } from '../../../src/maintenance/usage-tasks.ts';

const DAY_MS = 86_400_000;

/** Accounts whose usage is not closed beyond `closedThrough`, with a run of 1 credit a day from the next day on. */
async function insertUsage(
  database: Database,
  accountCount: number,
  closedThrough: string,
  days: number,
): Promise<void> {
  await sql`
    insert into accounts (account_id, name) select n, 'a' from generate_series(1, ${accountCount}::int) n`.execute(
    database,
  );
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    select n, n, 'a', 'key' from generate_series(1, ${accountCount}::int) n`.execute(database);
  await sql`
    insert into usage_watermarks (account_id, closed_through)
    select n, ${closedThrough}::date from generate_series(1, ${accountCount}::int) n`.execute(
    database,
  );
  await sql`
    insert into inbox_preview_runs
      (account_id, preview_job_id, usage_day, environment_id, user_id, quantity, recorded_at)
    select a, 'job-' || d || '-' || j, ${closedThrough}::date + d, a, 0, j, now()
      from generate_series(1, ${accountCount}::int) a, generate_series(1, ${days}::int) d,
           generate_series(1, 2) j`.execute(database);
}

const read = async (database: Database) => {
  const { rows } = await sql<{ closed: string; lagging: string; days: number; used: number }>`
    select (select to_char(max(closed_through), 'YYYY-MM-DD') from usage_watermarks) as closed,
           (select to_char(min(closed_through), 'YYYY-MM-DD') from usage_watermarks) as lagging,
           count(*)::int as days, coalesce(sum(used), 0)::int as used
      from inbox_preview_days where grain = 'workspace_user'`.execute(database);
  return rows[0];
};

test('a day is closed when it is over for the set time, and not before', async () => {
  const { database } = await createTestDatabase();
  await insertUsage(database, 1, '2026-02-26', 4);
  const close = (nowText: string) =>
    closeUsage({
      database,
      now: () => Date.parse(nowText),
      dayClosedAfterMs: DAY_MS,
      isStopping: () => false,
    });
  await close('2026-02-28T23:59:59.999Z');
  expect(await read(database)).toMatchObject({ closed: '2026-02-26', days: 0 });
  await close('2026-03-01T00:00:00.000Z');
  expect(await read(database)).toMatchObject({ closed: '2026-02-27', days: 1, used: 3 });
  await close('2026-03-01T23:59:59.999Z');
  await close('2026-02-01T00:00:00.000Z');
  expect(await read(database)).toMatchObject({ closed: '2026-02-27', days: 1, used: 3 });
  await close('2026-03-02T00:00:00.000Z');
  expect(await read(database)).toMatchObject({ closed: '2026-02-28', days: 2, used: 6 });
});

test('several workers that were away for months close everything once, of more accounts than go at a time', async () => {
  const { database } = await createTestDatabase();
  await insertUsage(database, 450, '2025-12-31', 70);
  const close = () =>
    closeUsage({
      database,
      now: () => Date.parse('2026-03-01T12:00:00Z'),
      dayClosedAfterMs: 0,
      isStopping: () => false,
    });
  await Promise.all([close(), close(), close()]);
  const whole = { closed: '2026-02-28', lagging: '2026-02-28', days: 450 * 59, used: 450 * 59 * 3 };
  expect(await read(database)).toEqual(whole);
  await close();
  expect(await read(database)).toEqual(whole);
});

test('a worker that has to stop leaves the rest to the next one', async () => {
  const { database } = await createTestDatabase();
  await insertUsage(database, 1, '2025-12-31', 59);
  const close = (isStopping: () => boolean) =>
    closeUsage({
      database,
      now: () => Date.parse('2026-03-01T00:00:00Z'),
      dayClosedAfterMs: 0,
      isStopping,
    });
  let asked = 0;
  await close(() => asked++ > 0);
  expect(await read(database)).toMatchObject({ closed: '2026-01-31', days: 31 });
  await close(() => false);
  expect(await read(database)).toMatchObject({ closed: '2026-02-28', days: 59, used: 59 * 3 });
});

test.each(['redis', 'postgres'] as const)(
  'one schedule on %s, however many workers ask for it; asked again after it was lost it goes on',
  async (kind) => {
    const { url } = await createTestDatabase();
    const isRedis = kind === 'redis';
    if (!isRedis) await migrateQueues(url);
    const broker = {
      databaseUrl: url,
      redisUrl: isRedis ? testRedisUrl() : undefined,
      prefix: uniquePrefix(),
      logger: createLogger('test', 'silent'),
    };
    const queues: TaskQueue<Record<string, never>>[] = [];
    const workers: { close(): Promise<void> }[] = [];
    let count = 0;
    for (let n = 0; n < 3; n++) {
      queues.push(await openTaskQueue(broker, USAGE_TASKS));
      workers.push(startTaskWorker(broker, USAGE_TASKS, 1, () => Promise.resolve(void count++)));
    }
    onTestFinished(async () => {
      await Promise.all(workers.map((worker) => worker.close()));
      await Promise.all(queues.map((queue) => queue.close()));
    });
    const everyMs = 300;
    const beganAtMs = performance.now();
    const askAll = () => Promise.all(queues.map((queue) => queue.schedule({}, everyMs)));
    // Asked three times as often as it comes due, it comes due all the same. Each request locks the schedule for a moment, so a
    // busy machine that is asked without a pause runs it seldom.
    // A request that a busy broker does not answer in time fails, and is made again.
    const wait = { timeout: 60_000, interval: everyMs / 3 };
    await vi.waitFor(async () => {
      await askAll();
      expect(count).toBeGreaterThanOrEqual(4);
    }, wait);
    const passedMs = performance.now() - beganAtMs;
    expect(count).toBeLessThanOrEqual(Math.ceil(passedMs / everyMs) + 2);
    if (!isRedis) return;

    const redis = await connectProducer(testRedisUrl(), 30_000);
    onTestFinished(() => redis.disconnect());
    const forget = async () => {
      const keys = await redis.keys(`*${broker.prefix}*`);
      if (keys.length > 0) await redis.del(...keys);
    };
    await forget();
    await vi.waitFor(askAll, wait);
    // From here on without a request. One may be left from before the loss, and one is done at once.
    const before = count;
    await vi.waitFor(() => expect(count).toBeGreaterThan(before + 2), wait);
  },
  180_000,
);
