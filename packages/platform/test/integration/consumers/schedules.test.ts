/**
 * A schedule that stands goes on once it is asked for again.
 *
 * It stands if it has lost its next job.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { openTaskQueue, startTaskWorker } from '@sluice/platform/consumers/queue-tasks';
import { createLogger } from '@sluice/platform/process/logger';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { connectProducer } from '@sluice/platform/redis/redis';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const EVERY_MS = 200;
const WAIT = { timeout: 60_000, interval: EVERY_MS / 4 };
const TASKS = { queue: 'things', keyOf: () => 'all' };

test.each(['redis', 'postgres'] as const)(
  'a schedule on %s that was set back to a job that has run goes on when it is asked for again',
  async (kind) => {
    const { database, url } = await createTestDatabase();
    await migrateQueues(url);
    const redisUrl = kind === 'redis' ? testRedisUrl() : undefined;
    const prefix = uniquePrefix();
    const broker = { databaseUrl: url, redisUrl, prefix, logger: createLogger('test', 'silent') };
    const redis = redisUrl === undefined ? undefined : await connectProducer(redisUrl, 30_000);
    onTestFinished(() => redis?.disconnect());
    const setBack = async (): Promise<void> => {
      if (!redis) {
        await sql`update bullmq.scheduler set next_run_ms = next_run_ms - 10 * every_ms`.execute(
          database,
        );
        return;
      }
      const [key = ''] = await redis.keys(`*${prefix}*:repeat`);
      await redis.zincrby(key, -10 * EVERY_MS, 'all');
    };

    const tasks = await openTaskQueue<object>(broker, TASKS);
    let count = 0;
    const worker = startTaskWorker(broker, TASKS, 1, () => Promise.resolve(void count++));
    onTestFinished(async () => {
      await worker.close();
      await tasks.close();
    });
    const untilRuns = (more: number): Promise<void> => {
      const before = count;
      return vi.waitFor(async () => {
        await tasks.schedule({}, EVERY_MS);
        expect(count - before).toBeGreaterThanOrEqual(more);
      }, WAIT);
    };
    await untilRuns(3);
    await setBack();
    // One may have been on its way, and one that the schedule no longer knows of may follow it.
    await untilRuns(4);
  },
  180_000,
);
