/** A task that reaches its worker while that closes: its resources are being closed too. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { openTaskQueue, startTaskWorker } from '@sluice/platform/consumers/queue-tasks';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';

/** Longer than the lock of a task that could not be put back while Postgres stood still: 15 s, and a look for it. */
const WAIT = { timeout: 40_000, interval: 10 };
const THINGS = { queue: 'things', keyOf: (thing: string) => thing };

test('a task that was on its way when its worker closed is left to the next one', async () => {
  const { database, url } = await createTestDatabase();
  const broker = { databaseUrl: url, prefix: 'none', logger: createLogger('test', 'silent') };
  const tasks = await openTaskQueue<string>(broker, THINGS);
  await tasks.wake('a thing');
  await sql`
    create function public.wait_for_test() returns trigger language plpgsql
    as 'begin perform pg_advisory_xact_lock(7); return new; end'`.execute(database);
  await sql`
    create trigger wait_for_test before update on bullmq.job for each row when (new.state = 'active')
    execute function public.wait_for_test()`.execute(database);

  const ranBy: string[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  const { first, closed } = await database.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(7)`.execute(transaction);
    const worker = startTaskWorker(broker, THINGS, 1, async () => {
      ranBy.push('first');
      await ended;
    });
    await vi.waitFor(async () => {
      const { rows } = await sql`
        select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
         where locktype = 'advisory' and objid = 7 and not granted`.execute(database);
      expect(rows).toHaveLength(1);
    }, WAIT);
    return { first: worker, closed: worker.close() };
  });
  try {
    await closed;
    expect(ranBy).toEqual([]);
  } finally {
    end(undefined);
    await first.close();
  }
  const second = startTaskWorker(broker, THINGS, 1, () =>
    Promise.resolve(void ranBy.push('second')),
  );
  await vi.waitFor(() => expect(ranBy).toEqual(['second']), WAIT);
  await second.close();
  await tasks.close();
});
