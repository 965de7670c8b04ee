/** A task that reaches its worker while that closes: its resources are being closed too. */
import { createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { openTaskQueue, startTaskWorker } from '@sluice/platform/consumers/queue-tasks';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

/** A task that is not put back returns when its lock ends: far too late for this test. */
const LOCK_MS = 120_000;
const WAIT = { timeout: 40_000, interval: 10 };
/** A part of the second that the broker has to take a task back. */
const STALL_MS = 300;

test('a task that was on its way when its worker closed is left to the next one', async () => {
  const { database, url } = await createTestDatabase();
  await migrateQueues(url);
  await sql`
    create function public.wait_for_test() returns trigger language plpgsql
    as 'begin perform pg_advisory_xact_lock(7); return new; end'`.execute(database);
  await sql`
    create trigger wait_for_test before update on bullmq.job for each row when (new.state = 'active')
    execute function public.wait_for_test()`.execute(database);
  const broker = {
    databaseUrl: url,
    prefix: 'none',
    logger: createLogger('test', 'silent'),
    stalledAfterMs: LOCK_MS,
  };

  const runByNext = async (tries: number): Promise<string[]> => {
    const things = { queue: `things-${tries}`, keyOf: (thing: string) => thing };
    const tasks = await openTaskQueue<string>(broker, things);
    onTestFinished(() => tasks.close());
    await tasks.wake('a thing');
    const ranBy: string[] = [];
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
    const { first, closed } = await database.transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(7)`.execute(transaction);
      const worker = startTaskWorker(broker, things, 1, async () => {
        ranBy.push('first');
        await ended;
      });
      await untilLockWaiters(database, 1);
      return { first: worker, closed: worker.close() };
    });
    try {
      await closed;
      expect(ranBy).toEqual([]);
    } finally {
      end(undefined);
      await first.close();
    }
    const second = startTaskWorker(broker, things, 1, () =>
      Promise.resolve(void ranBy.push('second')),
    );
    try {
      await vi.waitFor(() => expect(ranBy).not.toEqual([]), WAIT);
    } finally {
      await second.close();
    }
    return ranBy;
  };
  // A task that a broker did not take back in time waits for the end of its lock.
  const ranBy = await repeatIfStalled(STALL_MS, runByNext, () => sql`select 1`.execute(database));
  expect(ranBy).toEqual(['second']);
});
